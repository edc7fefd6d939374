-- Makes lanes that are missing, and says which those were: they are locked by this transaction. One
-- that is there, locked or not, is left.
INSERT INTO oncebox.lanes (route, source, object, touched)
SELECT route, source, object, floor(extract(epoch FROM statement_timestamp()) / 86400)::integer
FROM unnest($1::smallint[], $2::smallint[], $3::text[]) AS n (route, source, object)
ORDER BY route, source, object COLLATE "C"
ON CONFLICT (route, source, object) DO NOTHING
RETURNING route, source, object;
