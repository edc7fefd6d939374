SELECT r.id, s.name, r.event_id, r.event_type, r.received_at, r.oddity IS NOT NULL
FROM oncebox.receipts AS r
JOIN oncebox.sources AS s ON s.no = r.source
WHERE r.id BETWEEN $1 AND $2
ORDER BY r.id DESC
LIMIT $3;
