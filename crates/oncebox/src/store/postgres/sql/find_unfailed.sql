-- As find_candidates.sql, for a destination that is only just coming back, or is to be tried: what
-- never failed comes first, oldest first; then, unless only that is wanted, what failed longest ago
-- of those that are due longest.
SELECT
    d.receipt, d.route, d.source, d.lane, d.place, d.operation, d.created_at, d.ignores_stale,
    d.ignores_order, d.epoch, d.due_at, false, statement_timestamp(), NULL::smallint[]
FROM unnest($1::smallint[], $2::bigint[], $3::boolean[]) AS w (route, most, only_unfailed)
CROSS JOIN LATERAL (
    SELECT 1
    FROM oncebox.routes AS r
    WHERE r.no = w.route AND r.paused_at IS NULL AND r.fill_after IS NULL
    OFFSET 0
) AS running
CROSS JOIN LATERAL (
    SELECT p.*
    FROM (
        (
            SELECT d.*, 0 AS turn
            FROM oncebox.deliveries AS d
            WHERE d.route = w.route
              AND d.state = 'received'
              AND d.failures = 0
              AND d.crashes = 0
              AND d.replays = 0
              AND d.due_at <= statement_timestamp()
            ORDER BY d.due_at, d.receipt
            LIMIT w.most
        )
        UNION ALL
        (
            SELECT f.*, 1 AS turn
            FROM (
                SELECT d.*
                FROM oncebox.deliveries AS d
                WHERE NOT w.only_unfailed
                  AND d.route = w.route
                  AND d.state IN ('received', 'retrying')
                  AND (
                      d.state = 'retrying' OR d.failures > 0 OR d.crashes > 0 OR d.replays > 0
                  )
                  AND d.due_at <= statement_timestamp()
                ORDER BY d.due_at, d.receipt
                LIMIT $4::bigint
            ) AS f
            ORDER BY f.failed_at NULLS FIRST, f.receipt
            LIMIT w.most
        )
    ) AS p
    ORDER BY
        p.turn, CASE p.turn WHEN 1 THEN p.failed_at END NULLS FIRST, p.due_at, p.receipt
    LIMIT w.most
) AS d;
