SELECT
    r.head, r.tail, t.no, t.name, t.paused_at IS NOT NULL, s.name, r.event_id, r.event_type,
    r.object, r.version, r.received_at, d.state, d.reason, d.attempts, d.failures, d.crashes,
    d.snoozes, d.replays, iif(d.state IN ('received', 'retrying'), d.due_at, NULL), d.lease_until,
    d.worker, NULL, d.detail, NULL, NULL, NULL, iif(d.reason = 'unknown-effect', d.effect, NULL),
    r.oddity, r.first_head, r.first_tail, d.tried_ms
FROM deliveries AS d
CROSS JOIN routes AS t ON t.no = d.route
CROSS JOIN sources AS s ON s.no = d.source
CROSS JOIN receipts AS r ON r.head = d.receipt
WHERE (d.receipt, d.route) < (?1, ?2)
  AND d.receipt >= ?3
  AND (?4 IS NULL OR r.tail = ?4)
  AND (?5 IS NULL OR t.name = ?5)
  AND (?6 IS NULL OR s.name = ?6)
  AND (?7 IS NULL OR r.event_type GLOB ?7)
  AND (?8 IS NULL OR d.state = ?8)
  AND (?9 IS NULL OR d.reason = ?9)
  AND (?10 IS NULL OR substr(r.event_id, 1, length(?10)) = ?10)
  AND (?11 IS NULL OR r.object = ?11)
ORDER BY d.receipt DESC, d.route DESC
LIMIT ?12;
