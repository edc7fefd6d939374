-- Ids that were claimed for receipts that were never written: another node had their content.
DELETE FROM oncebox.identities AS i
USING unnest($1::smallint[], $2::uuid[], $3::uuid[]) AS s (source, key, content)
WHERE i.source = s.source
  AND i.key = s.key
  AND i.content = s.content
  AND NOT EXISTS (SELECT 1 FROM oncebox.receipts AS r WHERE r.id = i.receipt OFFSET 0);
