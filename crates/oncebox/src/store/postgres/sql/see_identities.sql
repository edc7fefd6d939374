-- At most one write per identity and day, however often it repeats. Locked in one order, so that
-- two writers cannot deadlock. Says which are there: one that was swept meanwhile is not.
WITH seen AS (
    SELECT source, key, max(today) AS today
    FROM unnest($1::smallint[], $2::uuid[], $3::integer[]) AS u (source, key, today)
    GROUP BY source, key
),
locked AS MATERIALIZED (
    SELECT i.source, i.key, i.last_seen, s.today
    FROM oncebox.identities AS i
    JOIN seen AS s ON s.source = i.source AND s.key = i.key
    ORDER BY i.source, i.key
    FOR UPDATE OF i
),
touched AS (
    UPDATE oncebox.identities AS i
    SET last_seen = l.today
    FROM locked AS l
    WHERE i.source = l.source AND i.key = l.key AND l.last_seen < l.today
)
SELECT source, key FROM locked;
