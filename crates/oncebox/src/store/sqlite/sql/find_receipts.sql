SELECT r.head, r.tail, s.name, r.event_id, r.event_type, r.received_at, r.oddity IS NOT NULL
FROM receipts AS r
JOIN sources AS s ON s.no = r.source
WHERE r.head BETWEEN ?1 AND ?2
ORDER BY r.head DESC
LIMIT ?3;
