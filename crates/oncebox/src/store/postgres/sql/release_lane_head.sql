-- Lets go the next delivery of each lane, unless one is under a lease. On an ordered route that is
-- the first one open, or else one that an operator let pass; on another route the first one held.
-- What waits for its operation is passed over. Lanes are locked before.
WITH next AS MATERIALIZED (
    SELECT
        l.route,
        CASE
            WHEN t.ordered THEN coalesce(
                (
                    SELECT CASE WHEN d.reason = 'order' THEN d.receipt END
                    FROM oncebox.deliveries AS d
                    WHERE d.route = l.route AND d.source = l.source AND d.lane = l.lane
                      AND (d.state <> 'dead' OR t.on_dead <> 'continue')
                      AND d.reason IS DISTINCT FROM 'same-operation'
                    ORDER BY d.place, d.receipt
                    LIMIT 1
                ),
                (
                    SELECT d.receipt
                    FROM oncebox.deliveries AS d
                    WHERE d.route = l.route AND d.source = l.source AND d.lane = l.lane
                      AND d.reason = 'order' AND d.ignores_order
                    ORDER BY d.place, d.receipt
                    LIMIT 1
                )
            )
            ELSE (
                SELECT d.receipt
                FROM oncebox.deliveries AS d
                WHERE d.route = l.route AND d.source = l.source AND d.lane = l.lane
                  AND d.reason = 'order'
                ORDER BY d.place, d.receipt
                LIMIT 1
            )
        END AS receipt
    FROM unnest($1::smallint[], $2::smallint[], $3::text[]) AS l (route, source, lane)
    JOIN oncebox.routes AS t ON t.no = l.route
    WHERE NOT EXISTS (
        SELECT 1 FROM oncebox.deliveries AS d
        WHERE d.route = l.route AND d.source = l.source AND d.lane = l.lane
          AND d.state = 'processing'
    )
)
UPDATE oncebox.deliveries AS d
SET state = 'received', reason = NULL, due_at = statement_timestamp()
FROM next AS n
WHERE d.receipt = n.receipt AND d.route = n.route AND d.state = 'held';
