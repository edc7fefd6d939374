-- Held since its payload is damaged. Nothing was tried, so it costs no attempt.
UPDATE deliveries
SET
    state = 'held',
    reason = 'damaged',
    attempts = attempts - 1,
    lease_until = NULL,
    worker = NULL,
    lost = 0,
    detail = ?4
WHERE receipt = ?1 AND route = ?2 AND state = 'processing' AND epoch = ?3;
