SELECT
    r.id, s.name, r.event_id, r.trust, r.event_type, r.object, r.version, r.received_at,
    octet_length(r.body)::bigint, n.duplicates, n.conflicts, n.twins, n.first_at, n.last_at,
    r.oddity, r.first
FROM oncebox.receipts AS r
JOIN oncebox.sources AS s ON s.no = r.source
LEFT JOIN oncebox.repeats AS n ON n.receipt = r.id
WHERE r.id < $1
  AND r.id >= $2
  AND r.id < $3
  AND CASE WHEN $4::text IS NULL THEN s.name NOT LIKE 'outbox/%' ELSE s.name = $4 END
  AND ($5::text IS NULL OR r.event_type LIKE $5)
  AND ($6::text IS NULL OR r.event_id = $6)
  AND ($7::text IS NULL OR r.object = $7)
  AND (NOT $8 OR r.routes = 0)
  AND (NOT $9 OR r.oddity IS NOT NULL)
ORDER BY r.id DESC
LIMIT $10;
