-- Adds up what deliveries did, so many rows at a time. Should two do it at once, each takes rows
-- that the other does not have.
WITH gone AS (
    DELETE FROM oncebox.delivery_deltas AS d
    WHERE d.ctid = ANY (
        ARRAY(SELECT ctid FROM oncebox.delivery_deltas LIMIT $1 FOR UPDATE SKIP LOCKED)
    )
    RETURNING d.minute, d.came, d.went, d.route, d.state, d.reason
),
counted AS (
    INSERT INTO oncebox.delivery_counts AS c (route, state, reason, count)
    SELECT g.route, g.state, g.reason, sum(g.came - g.went)
    FROM gone AS g
    GROUP BY g.route, g.state, g.reason
    ORDER BY g.route, g.state, g.reason
    ON CONFLICT (route, state, reason) DO UPDATE SET count = c.count + excluded.count
),
rolled AS (
    INSERT INTO oncebox.delivery_rollups AS r (span, start, route, state, reason, count)
    SELECT s.span, g.minute - g.minute % s.span, g.route, g.state, g.reason, sum(g.came)
    FROM gone AS g
    CROSS JOIN (VALUES (1), (60)) AS s (span)
    WHERE g.came > 0
    GROUP BY 1, 2, 3, 4, 5
    ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (span, start, route, state, reason)
        DO UPDATE SET count = r.count + excluded.count
)
SELECT count(*) FROM gone;
