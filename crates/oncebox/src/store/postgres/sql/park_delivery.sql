-- Ends an attempt and holds its delivery until somebody has said what came of an effect. It costs
-- no attempt of its budget. The delivery is locked by this transaction.
WITH parked AS (
    UPDATE oncebox.deliveries AS d
    SET
        state = 'held',
        reason = 'unknown-effect',
        effect = $4,
        snoozes = d.snoozes + 1,
        lease_until = NULL,
        worker = NULL,
        lost = 0,
        detail = $5
    WHERE d.receipt = $1 AND d.route = $2 AND d.epoch = $3 AND d.lease_until IS NOT NULL
    RETURNING d.*
)
INSERT INTO oncebox.attempts (
    receipt, route, epoch, number, replays, ended_at, outcome, detail
)
SELECT receipt, route, epoch, attempts, replays, statement_timestamp(), 'snooze', detail
FROM parked;
