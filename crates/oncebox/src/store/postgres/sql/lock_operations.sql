-- As lock_lanes.sql, for operations. Lanes are locked before.
INSERT INTO oncebox.operations AS o (route, key, touched)
SELECT route, key, floor(extract(epoch FROM statement_timestamp()) / 86400)::integer
FROM unnest($1::smallint[], $2::uuid[]) AS n (route, key)
ORDER BY route, key
ON CONFLICT (route, key) DO UPDATE SET touched = excluded.touched
WHERE o.touched <> excluded.touched;
