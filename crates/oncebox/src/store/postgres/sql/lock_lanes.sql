-- Locks the rows of objects in one order, so that two nodes cannot deadlock, and makes those that
-- are missing. A row is written at most once a day; the lock is taken all the same.
INSERT INTO oncebox.lanes AS l (route, source, object, touched)
SELECT route, source, object, floor(extract(epoch FROM statement_timestamp()) / 86400)::integer
FROM unnest($1::smallint[], $2::smallint[], $3::text[]) AS n (route, source, object)
ORDER BY route, source, object COLLATE "C"
ON CONFLICT (route, source, object) DO UPDATE SET touched = excluded.touched
WHERE l.touched <> excluded.touched;
