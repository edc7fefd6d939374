-- Counts as a failure, which adds to the time it has been tried (?8), or as a snooze.
UPDATE deliveries
SET
    state = 'retrying',
    failures = failures + ?4,
    snoozes = snoozes + ?5,
    tried_ms = tried_ms + ?8,
    failed_at = iif(?4, ?9, failed_at),
    retrying_since = iif(?4, coalesce(retrying_since, ?9), retrying_since),
    due_at = ?6,
    lease_until = NULL,
    worker = NULL,
    lost = 0,
    detail = ?7
WHERE receipt = ?1 AND route = ?2 AND state = 'processing' AND epoch = ?3;
