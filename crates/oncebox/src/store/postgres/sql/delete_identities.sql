-- A stretch of the table, read in the order it lies on disk: no index has to be kept for this.
-- An identity with an open delivery stays.
DELETE FROM oncebox.identities AS i
USING unnest($3::smallint[], $4::integer[]) AS b (source, bound)
WHERE i.ctid >= $1::text::tid
  AND i.ctid < $2::text::tid
  AND b.source = i.source
  AND i.last_seen < b.bound
  AND NOT EXISTS (SELECT 1 FROM oncebox.deliveries AS d WHERE d.receipt = i.receipt);
