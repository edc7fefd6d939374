-- The worker is lost: the attempt counts, and the next one is made alone.
UPDATE deliveries
SET
    state = iif(?4, 'dead', 'retrying'),
    crashes = crashes + 1,
    lost = 1,
    due_at = ?5,
    lease_until = NULL,
    worker = NULL,
    detail = ?6
WHERE receipt = ?1 AND route = ?2 AND state = 'processing' AND epoch = ?3;
