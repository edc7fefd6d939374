-- Guarded as its route guards now, and back at its place. Receipts are locked before.
WITH left_over AS MATERIALIZED (
    SELECT d.tid, CASE WHEN t.ordered OR t.skip_stale THEN r.object ELSE d.lane END AS lane
    FROM (
        SELECT receipt, route
        FROM unnest($1::uuid[], $2::smallint[]) AS w (receipt, route)
        ORDER BY receipt, route
    ) AS w
    CROSS JOIN LATERAL (
        SELECT d.ctid AS tid, d.lane
        FROM oncebox.deliveries AS d
        WHERE d.receipt = w.receipt AND d.route = w.route AND d.state IN ('dead', 'held')
        FOR UPDATE
    ) AS d
    CROSS JOIN LATERAL (
        SELECT t.ordered, t.skip_stale FROM oncebox.routes AS t WHERE t.no = w.route OFFSET 0
    ) AS t
    CROSS JOIN LATERAL (
        SELECT r.object
        FROM oncebox.receipts AS r
        WHERE r.id = w.receipt AND r.id = ANY ($1)
        OFFSET 0
    ) AS r
)
UPDATE oncebox.deliveries AS d
SET
    state = 'received',
    reason = NULL,
    effect = NULL,
    due_at = statement_timestamp(),
    attempts = 0,
    failures = 0,
    crashes = 0,
    snoozes = 0,
    tried_ms = 0,
    failed_at = NULL,
    retrying_since = NULL,
    replays = d.replays + 1,
    lost = 0,
    ignores_stale = $3,
    ignores_order = false,
    hastened_at = NULL,
    lane = l.lane
FROM left_over AS l
WHERE d.ctid = l.tid
RETURNING d.receipt, d.route;
