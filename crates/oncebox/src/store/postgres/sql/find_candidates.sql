-- Due deliveries of routes with guards, to be judged in the same transaction. They are not locked
-- yet: what they share with others comes first. See claim.sql.
WITH wanted AS MATERIALIZED (
    SELECT w.route, w.most, w.floor, suspect.lost
    FROM unnest($1::smallint[], $2::bigint[], $3::timestamptz[]) AS w (route, most, floor)
    CROSS JOIN LATERAL (
        SELECT 1
        FROM oncebox.routes AS r
        WHERE r.no = w.route AND r.paused_at IS NULL AND r.fill_after IS NULL
        OFFSET 0
    ) AS running
    LEFT JOIN LATERAL (
        SELECT d.lost
        FROM oncebox.deliveries AS d
        WHERE d.route = w.route
          AND d.lost > 0
          AND d.state NOT IN ('processing', 'held', 'dead')
          AND d.due_at <= statement_timestamp()
        ORDER BY d.lost, d.due_at, d.receipt
        LIMIT 1
    ) AS suspect ON true
),
picked AS MATERIALIZED (
    SELECT d.*, true AS alone
    FROM wanted AS w
    CROSS JOIN LATERAL (
        SELECT d.*
        FROM oncebox.deliveries AS d
        WHERE d.route = w.route
          AND d.lost = w.lost
          AND d.lost > 0
          AND d.state NOT IN ('processing', 'held', 'dead')
          AND d.due_at <= statement_timestamp()
        ORDER BY d.due_at, d.receipt
        LIMIT CASE w.lost WHEN 1 THEN w.most WHEN 2 THEN greatest((w.most + 7) / 8, 1) ELSE 1 END
    ) AS d
    WHERE w.lost IS NOT NULL
    UNION ALL
    SELECT due.*, false AS alone
    FROM wanted AS w
    CROSS JOIN LATERAL (
        SELECT d.*
        FROM oncebox.deliveries AS d
        WHERE d.route = w.route
          AND d.lost = 0
          AND d.state IN ('received', 'retrying')
          AND d.due_at >= w.floor
          AND d.due_at <= statement_timestamp()
        ORDER BY d.due_at, d.receipt
        LIMIT w.most
    ) AS due
    WHERE w.lost IS NULL
)
SELECT
    d.receipt, d.route, d.source, d.lane, d.place, d.operation, d.created_at, d.ignores_stale,
    d.ignores_order, d.epoch, d.due_at, d.alone, call.at, call.paused
FROM (
    SELECT
        statement_timestamp() AS at,
        (
            SELECT array_agg(t.no)
            FROM oncebox.routes AS t
            WHERE t.no = ANY ($1) AND (t.paused_at IS NOT NULL OR t.fill_after IS NOT NULL)
        ) AS paused
) AS call
LEFT JOIN picked AS d ON true;
