-- Adds up what came in, so many rows at a time. Types that are too many for an hour of their source
-- are counted without their names.
WITH gone AS (
    DELETE FROM oncebox.arrival_deltas AS d
    WHERE d.ctid = ANY (
        ARRAY(SELECT ctid FROM oncebox.arrival_deltas LIMIT $1 FOR UPDATE SKIP LOCKED)
    )
    RETURNING d.minute, d.count, d.source, d.outcome, d.event_type
),
known AS (
    SELECT DISTINCT r.source, r.start, r.event_type
    FROM oncebox.arrival_rollups AS r
    WHERE r.span = 60 AND (r.source, r.start) IN (
        SELECT g.source, g.minute - g.minute % 60 FROM gone AS g
    )
),
fresh AS (
    SELECT
        t.source, t.start, t.event_type,
        row_number() OVER (PARTITION BY t.source, t.start ORDER BY t.event_type) AS n
    FROM (
        SELECT DISTINCT g.source, g.minute - g.minute % 60 AS start, g.event_type FROM gone AS g
    ) AS t
    WHERE NOT EXISTS (
        SELECT 1 FROM known AS k
        WHERE k.source = t.source AND k.start = t.start AND k.event_type = t.event_type
    )
),
nameless AS (
    SELECT f.source, f.start, f.event_type
    FROM fresh AS f
    WHERE f.n + (
        SELECT count(*) FROM known AS k WHERE k.source = f.source AND k.start = f.start
    ) > $2
),
named AS (
    SELECT
        g.minute, g.count, g.source, g.outcome,
        CASE WHEN n.event_type IS NULL THEN g.event_type ELSE '' END AS event_type
    FROM gone AS g
    LEFT JOIN nameless AS n
        ON n.source = g.source AND n.start = g.minute - g.minute % 60
        AND n.event_type = g.event_type
),
rolled AS (
    INSERT INTO oncebox.arrival_rollups AS r (span, start, source, outcome, event_type, count)
    SELECT s.span, n.minute - n.minute % s.span, n.source, n.outcome, n.event_type, sum(n.count)
    FROM named AS n
    CROSS JOIN (VALUES (1), (60)) AS s (span)
    GROUP BY 1, 2, 3, 4, 5
    ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (span, start, source, outcome, event_type)
        DO UPDATE SET count = r.count + excluded.count
)
SELECT count(*) FROM gone;
