-- The newest version of an object that was processed on a route. The lane is locked before.
UPDATE oncebox.lanes AS l
SET applied = m.version
FROM (
    SELECT d.route, d.source, d.lane, max(d.version) AS version
    FROM unnest($1::smallint[], $2::smallint[], $3::text[], $4::bigint[])
        AS d (route, source, lane, version)
    GROUP BY d.route, d.source, d.lane
) AS m
WHERE l.route = m.route
  AND l.source = m.source
  AND l.object = m.lane
  AND (l.applied IS NULL OR l.applied < m.version);
