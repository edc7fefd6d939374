-- Twins that were recorded. Their guards are locked.
UPDATE oncebox.guards AS g
SET held = g.held + c.held, types = g.types + c.types
FROM unnest($1::smallint[], $2::uuid[], $3::smallint[], $4::smallint[])
    AS c (source, key, held, types)
WHERE g.source = c.source AND g.key = c.key;
