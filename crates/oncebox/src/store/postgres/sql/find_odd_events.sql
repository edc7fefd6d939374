-- Odd receipts whose event ids are in a range: that of a twin is in no identity.
SELECT r.id, s.name, r.event_id, r.event_type, r.received_at, true
FROM oncebox.receipts AS r
JOIN oncebox.sources AS s ON s.no = r.source
WHERE r.oddity IS NOT NULL
  AND r.event_id COLLATE "C" >= $1 AND r.event_id COLLATE "C" <= $2
LIMIT $3;
