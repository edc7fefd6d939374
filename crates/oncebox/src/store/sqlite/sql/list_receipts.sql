SELECT
    r.head, r.tail, s.name, r.event_id, r.trust, r.event_type, r.object, r.version, r.received_at,
    length(r.body), n.duplicates, n.conflicts, n.twins, n.first_at, n.last_at,
    r.oddity, r.first_head, r.first_tail
FROM receipts AS r
JOIN sources AS s ON s.no = r.source
LEFT JOIN repeats AS n ON n.receipt = r.head
WHERE r.head < ?1
  AND r.head >= ?2
  AND r.head < ?3
  AND iif(?4 IS NULL, s.name NOT GLOB 'outbox/*', s.name = ?4)
  AND (?5 IS NULL OR r.event_type GLOB ?5)
  AND (?6 IS NULL OR r.event_id = ?6)
  AND (?7 IS NULL OR r.object = ?7)
  AND (NOT ?8 OR r.routes = 0)
  AND (NOT ?9 OR r.oddity IS NOT NULL)
ORDER BY r.head DESC
LIMIT ?10;
