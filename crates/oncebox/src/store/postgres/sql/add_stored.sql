UPDATE oncebox.sources AS s
SET stored = s.stored + a.bytes
FROM unnest($1::smallint[], $2::bigint[]) AS a (no, bytes)
WHERE s.no = a.no;
