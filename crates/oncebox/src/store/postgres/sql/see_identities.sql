-- At most one write per identity and day, however often it repeats.
UPDATE oncebox.identities AS i
SET last_seen = s.today
FROM (
    SELECT source, key, max(today) AS today
    FROM unnest($1::smallint[], $2::uuid[], $3::integer[]) AS u (source, key, today)
    GROUP BY source, key
) AS s
WHERE i.source = s.source AND i.key = s.key AND i.last_seen < s.today;
