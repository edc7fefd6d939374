-- Back at its place, guarded as its route guards now. The epoch goes on from where it was, so no
-- lease of before fits again. The attempt that finished it goes to the others. Receipts are locked
-- before.
WITH gone AS (
    DELETE FROM oncebox.finished AS f
    USING unnest($1::uuid[], $2::smallint[]) AS w (receipt, route)
    WHERE f.receipt = w.receipt
      AND f.receipt = ANY ($1)
      AND f.route = w.route
      AND (f.state = 'skipped' OR $4)
    RETURNING f.*
),
tried AS (
    INSERT INTO oncebox.attempts (
        receipt, route, epoch, number, replays, ended_at, outcome, took_ms, status, detail
    )
    SELECT
        receipt, route, epoch, attempts, replays, finished_at, coalesce(reason, state), took_ms,
        status, detail
    FROM gone
    WHERE took_ms IS NOT NULL
)
INSERT INTO oncebox.deliveries (
    receipt, route, source, state, created_at, due_at, epoch, replays, ignores_stale, lane, place,
    operation, detail
)
SELECT
    f.receipt, f.route, f.source, 'received', f.created_at, statement_timestamp(), f.epoch,
    f.replays + 1, $3, CASE WHEN f.laned OR t.ordered OR t.skip_stale THEN r.object END,
    coalesce(r.version, -9223372036854775808), f.operation, f.detail
FROM gone AS f
CROSS JOIN LATERAL (
    SELECT r.object, r.version
    FROM oncebox.receipts AS r
    WHERE r.id = f.receipt AND r.id = ANY ($1)
    OFFSET 0
) AS r
CROSS JOIN LATERAL (
    SELECT t.ordered, t.skip_stale FROM oncebox.routes AS t WHERE t.no = f.route OFFSET 0
) AS t
RETURNING receipt, route;
