UPDATE oncebox.sources AS s
SET stored = greatest(s.stored + a.bytes, 0)
FROM unnest($1::smallint[], $2::bigint[]) AS a (no, bytes)
WHERE s.no = a.no;
