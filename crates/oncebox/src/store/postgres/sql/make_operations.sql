-- As make_lanes.sql, for operations.
INSERT INTO oncebox.operations (route, key, touched)
SELECT route, key, floor(extract(epoch FROM statement_timestamp()) / 86400)::integer
FROM unnest($1::smallint[], $2::uuid[]) AS n (route, key)
ORDER BY route, key
ON CONFLICT (route, key) DO NOTHING
RETURNING route, key;
