-- Odd receipts whose event ids are in a range: that of a twin is in no identity.
SELECT r.head, r.tail, s.name, r.event_id, r.event_type, r.received_at, 1
FROM receipts AS r INDEXED BY receipts_odd
JOIN sources AS s ON s.no = r.source
WHERE r.oddity IS NOT NULL AND r.event_id >= ?1 AND r.event_id <= ?2
LIMIT ?3;
