-- As see_identities.sql, for guards.
WITH seen AS (
    SELECT source, key, max(today) AS today
    FROM unnest($1::smallint[], $2::uuid[], $3::integer[]) AS u (source, key, today)
    GROUP BY source, key
),
locked AS MATERIALIZED (
    SELECT g.source, g.key, g.last_seen, s.today
    FROM oncebox.guards AS g
    JOIN seen AS s ON s.source = g.source AND s.key = g.key
    ORDER BY g.source, g.key
    FOR UPDATE OF g
)
UPDATE oncebox.guards AS g
SET last_seen = l.today
FROM locked AS l
WHERE g.source = l.source AND g.key = l.key AND l.last_seen < l.today;
