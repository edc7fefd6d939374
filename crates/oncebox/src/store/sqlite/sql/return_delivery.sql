-- As if it had not been claimed: what was lost before is as suspect as it was.
UPDATE deliveries
SET
    state = iif(attempts = 1, 'received', 'retrying'),
    attempts = attempts - 1,
    due_at = ?4,
    lease_until = NULL,
    worker = NULL
WHERE receipt = ?1 AND route = ?2 AND state = 'processing' AND epoch = ?3;
