-- Held until somebody has said what came of an effect. It costs no attempt of its budget.
UPDATE deliveries
SET
    state = 'held',
    reason = 'unknown-effect',
    effect = ?4,
    snoozes = snoozes + 1,
    lease_until = NULL,
    worker = NULL,
    lost = 0,
    detail = ?5
WHERE receipt = ?1 AND route = ?2 AND state = 'processing' AND epoch = ?3;
