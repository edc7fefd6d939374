-- Adds up what came in. Types that are too many for an hour of their source are counted without
-- their names.
WITH known AS MATERIALIZED (
    SELECT DISTINCT r.source, r.start, r.event_type
    FROM arrival_rollups AS r
    WHERE r.span = 60 AND r.start IN (SELECT d.minute - d.minute % 60 FROM arrival_deltas AS d)
),
fresh AS MATERIALIZED (
    SELECT
        t.source, t.start, t.event_type,
        row_number() OVER (PARTITION BY t.source, t.start ORDER BY t.event_type) AS n
    FROM (
        SELECT DISTINCT d.source, d.minute - d.minute % 60 AS start, d.event_type
        FROM arrival_deltas AS d
    ) AS t
    WHERE NOT EXISTS (
        SELECT 1 FROM known AS k
        WHERE k.source = t.source AND k.start = t.start AND k.event_type = t.event_type
    )
),
nameless AS MATERIALIZED (
    SELECT f.source, f.start, f.event_type
    FROM fresh AS f
    WHERE f.n + (
        SELECT count(*) FROM known AS k WHERE k.source = f.source AND k.start = f.start
    ) > ?1
)
INSERT INTO arrival_rollups (span, start, source, outcome, event_type, count)
SELECT
    s.span, d.minute - d.minute % s.span, d.source, d.outcome,
    CASE WHEN n.event_type IS NULL THEN d.event_type ELSE '' END, sum(d.count)
FROM arrival_deltas AS d
CROSS JOIN (SELECT 1 AS span UNION ALL SELECT 60) AS s
LEFT JOIN nameless AS n
    ON n.source = d.source AND n.start = d.minute - d.minute % 60 AND n.event_type = d.event_type
WHERE true
GROUP BY 1, 2, 3, 4, 5
ON CONFLICT (span, start, source, outcome, event_type) DO UPDATE SET count = count + excluded.count;
