-- Finishes deliveries without delivering them: they are not attempts, so nothing is timed.
WITH gone AS (
    DELETE FROM oncebox.deliveries AS d
    USING unnest($1::uuid[], $2::smallint[], $3::text[], $4::uuid[])
        AS s (receipt, route, why, first)
    WHERE d.receipt = s.receipt
      AND d.route = s.route
      AND d.state IN ('received', 'retrying', 'held', 'dead')
    RETURNING d.*, s.why, s.first
)
INSERT INTO oncebox.finished (
    receipt, route, source, state, reason, first, created_at, finished_at, epoch, attempts,
    failures, crashes, snoozes, replays, laned, operation, detail
)
SELECT
    receipt, route, source, 'skipped', why, first, created_at, statement_timestamp(), epoch,
    attempts, failures, crashes, snoozes, replays, lane IS NOT NULL, operation, detail
FROM gone;
