UPDATE deliveries
SET
    state = 'dead',
    failures = failures + 1,
    failed_at = ?5,
    lease_until = NULL,
    worker = NULL,
    lost = 0,
    detail = ?4
WHERE receipt = ?1 AND route = ?2 AND state = 'processing' AND epoch = ?3;
