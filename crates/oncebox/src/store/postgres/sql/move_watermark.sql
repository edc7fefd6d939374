-- The newest version of an object that was processed on a route. The lane is locked before.
UPDATE oncebox.lanes AS l
SET applied = m.version
FROM (
    SELECT d.route, d.source, d.lane, max(d.version) AS version
    FROM unnest($1::smallint[], $2::smallint[], $3::text[], $4::bigint[])
        AS d (route, source, lane, version)
    GROUP BY d.route, d.source, d.lane
) AS m
CROSS JOIN LATERAL (
    SELECT o.ctid AS tid
    FROM oncebox.lanes AS o
    WHERE o.route = m.route AND o.source = m.source AND o.object = m.lane
      AND (o.applied IS NULL OR o.applied < m.version)
    OFFSET 0
) AS o
WHERE l.ctid = o.tid;
