WITH left_over AS MATERIALIZED (
    SELECT d.receipt, d.route
    FROM unnest($1::uuid[], $2::smallint[]) AS w (receipt, route)
    JOIN oncebox.deliveries AS d ON d.receipt = w.receipt AND d.route = w.route
    WHERE d.state IN ('dead', 'held')
    ORDER BY d.receipt, d.route
    FOR UPDATE OF d
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
WHERE d.receipt = l.receipt AND d.route = l.route
RETURNING d.receipt, d.route;
