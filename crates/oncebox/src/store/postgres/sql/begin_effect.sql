-- Begins an effect that nobody has begun, under a good lease. The unique key decides who was first,
-- and whoever has it and has not committed yet is waited for.
WITH mine AS MATERIALIZED (
    SELECT d.attempts
    FROM oncebox.deliveries AS d
    WHERE d.receipt = $3
      AND d.route = $4
      AND d.epoch = $5
      AND d.lease_until > statement_timestamp()
)
INSERT INTO oncebox.effects (key, kind, state, receipt, route, epoch, attempt, at)
SELECT $1, $2, 'started', $3, $4, $5, m.attempts, statement_timestamp()
FROM mine AS m
ON CONFLICT (key) DO NOTHING;
