-- The worker is lost: the attempt counts unless it is refunded, and the next one is made apart.
UPDATE deliveries
SET
    state = iif(?4, 'dead', 'retrying'),
    attempts = attempts - ?7,
    crashes = crashes + 1,
    lost = ?8,
    failed_at = ?5,
    retrying_since = coalesce(retrying_since, ?5),
    due_at = ?5,
    lease_until = NULL,
    worker = NULL,
    detail = ?6
WHERE receipt = ?1 AND route = ?2 AND state = 'processing' AND epoch = ?3;
