-- As delete_identities.sql: a guard whose first event has an open delivery stays.
DELETE FROM oncebox.guards AS g
USING unnest($3::smallint[], $4::integer[]) AS b (source, bound)
WHERE g.ctid >= $1::text::tid
  AND g.ctid < $2::text::tid
  AND b.source = g.source
  AND g.last_seen < b.bound
  AND NOT EXISTS (SELECT 1 FROM oncebox.deliveries AS d WHERE d.receipt = g.receipt);
