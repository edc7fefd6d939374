-- Counts as a failure or as a snooze.
UPDATE deliveries
SET
    state = 'retrying',
    failures = failures + ?4,
    snoozes = snoozes + ?5,
    due_at = ?6,
    lease_until = NULL,
    worker = NULL,
    lost = 0,
    detail = ?7
WHERE receipt = ?1 AND route = ?2 AND state = 'processing' AND epoch = ?3;
