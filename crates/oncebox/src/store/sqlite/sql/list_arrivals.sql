SELECT r.start, s.name, r.outcome, r.event_type, r.count
FROM arrival_rollups AS r
JOIN sources AS s ON s.no = r.source
WHERE r.span = ?1 AND r.start BETWEEN ?2 AND ?3
ORDER BY r.start, s.name, r.outcome, r.event_type;
