WITH left_over AS MATERIALIZED (
    SELECT d.tid
    FROM (
        SELECT receipt, route
        FROM unnest($1::uuid[], $2::smallint[]) AS w (receipt, route)
        ORDER BY receipt, route
    ) AS w
    CROSS JOIN LATERAL (
        SELECT d.ctid AS tid
        FROM oncebox.deliveries AS d
        WHERE d.receipt = w.receipt AND d.route = w.route AND d.state IN ('dead', 'held')
        FOR UPDATE
    ) AS d
)
UPDATE oncebox.deliveries AS d
SET
    state = 'received',
    reason = NULL,
    due_at = statement_timestamp(),
    attempts = 0,
    failures = 0,
    crashes = 0,
    snoozes = 0,
    replays = d.replays + 1,
    lost = false,
    ignores_stale = $3,
    hastened_at = NULL
FROM left_over AS l
WHERE d.ctid = l.tid
RETURNING d.receipt, d.route;
