-- Finishes deliveries without delivering them: they are not attempts, so nothing is timed. They are
-- locked by this transaction.
WITH gone AS (
    DELETE FROM oncebox.deliveries AS d
    USING unnest($1::uuid[], $2::smallint[], $3::text[], $4::uuid[])
        AS s (receipt, route, why, first)
    CROSS JOIN LATERAL (
        SELECT o.ctid AS tid
        FROM oncebox.deliveries AS o
        WHERE o.receipt = s.receipt AND o.route = s.route
        OFFSET 0
    ) AS o
    WHERE d.ctid = o.tid
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
