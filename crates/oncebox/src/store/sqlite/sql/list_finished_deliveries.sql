SELECT
    r.head, r.tail, t.no, t.name, t.paused_at IS NOT NULL, s.name, r.event_id, r.event_type,
    r.object, r.version, r.received_at, f.state, f.reason, f.attempts, f.failures, f.crashes,
    f.snoozes, f.replays, NULL, NULL, NULL, f.finished_at, f.detail, f.summary, f.first_head,
    f.first_tail, NULL, r.oddity, r.first_head, r.first_tail, 0
FROM finished AS f
CROSS JOIN routes AS t ON t.no = f.route
CROSS JOIN sources AS s ON s.no = f.source
CROSS JOIN receipts AS r ON r.head = f.receipt
WHERE (f.receipt, f.route) < (?1, ?2)
  AND f.receipt >= ?3
  AND (?4 IS NULL OR r.tail = ?4)
  AND (?5 IS NULL OR t.name = ?5)
  AND (?6 IS NULL OR s.name = ?6)
  AND (?7 IS NULL OR r.event_type GLOB ?7)
  AND (?8 IS NULL OR f.state = ?8)
  AND (?9 IS NULL OR f.reason = ?9)
  AND (?10 IS NULL OR substr(r.event_id, 1, length(?10)) = ?10)
  AND (?11 IS NULL OR r.object = ?11)
ORDER BY f.receipt DESC, f.route DESC
LIMIT ?12;
