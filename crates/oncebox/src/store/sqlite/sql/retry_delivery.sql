-- Counts as a failure or as a snooze.
UPDATE deliveries
SET
    state = 'retrying',
    failures = failures + ?5,
    snoozes = snoozes + ?6,
    due_at = ?7,
    lease_until = NULL,
    worker = NULL,
    detail = ?8
WHERE receipt = ?1 AND route = ?2 AND state = 'processing' AND epoch = ?3 AND lease_until > ?4
RETURNING source, created_at, lane, place, operation, epoch, attempts, replays;
