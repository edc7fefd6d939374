-- Lets go the next delivery of each lane, unless one is under a lease. On an ordered route that is
-- the first one open, or else one that an operator let pass; on another route the first one held.
-- What waits for its operation is passed over, and on a route that goes on what has kept failing
-- for long. Lanes are locked before.
WITH next AS MATERIALIZED (
    SELECT
        CASE
            WHEN t.ordered THEN coalesce(
                (
                    SELECT CASE WHEN d.reason = 'order' THEN d.ctid END
                    FROM oncebox.deliveries AS d
                    WHERE d.route = l.route AND d.source = l.source AND d.lane = l.lane
                      AND (d.state <> 'dead' OR t.on_dead <> 'continue')
                      AND (
                          d.state <> 'retrying' OR t.on_dead <> 'continue'
                          OR (
                              d.retrying_since
                              <= statement_timestamp() - t.hold_for_ms * interval '1 millisecond'
                          ) IS NOT TRUE
                      )
                      AND d.reason IS DISTINCT FROM 'same-operation'
                    ORDER BY d.place, d.receipt
                    LIMIT 1
                ),
                (
                    SELECT d.ctid
                    FROM oncebox.deliveries AS d
                    WHERE d.route = l.route AND d.source = l.source AND d.lane = l.lane
                      AND d.reason = 'order' AND d.ignores_order
                    ORDER BY d.place, d.receipt
                    LIMIT 1
                )
            )
            ELSE (
                SELECT d.ctid
                FROM oncebox.deliveries AS d
                WHERE d.route = l.route AND d.source = l.source AND d.lane = l.lane
                  AND d.reason = 'order'
                ORDER BY d.place, d.receipt
                LIMIT 1
            )
        END AS tid
    FROM unnest($1::smallint[], $2::smallint[], $3::text[]) AS l (route, source, lane)
    JOIN oncebox.routes AS t ON t.no = l.route
    WHERE NOT EXISTS (
        SELECT 1 FROM oncebox.deliveries AS d
        WHERE d.route = l.route AND d.source = l.source AND d.lane = l.lane COLLATE "C"
          AND d.state = 'processing'
        OFFSET 0
    )
)
UPDATE oncebox.deliveries AS d
SET state = 'received', reason = NULL, due_at = statement_timestamp()
FROM next AS n
WHERE d.ctid = n.tid AND d.reason = 'order';
