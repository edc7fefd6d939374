SELECT
    d.receipt, d.route, t.name, t.paused_at IS NOT NULL, s.name, r.event_id, r.event_type, r.object,
    r.version, r.received_at, d.state, d.reason, d.attempts, d.failures, d.crashes, d.snoozes,
    d.replays, CASE WHEN d.state IN ('received', 'retrying') THEN d.due_at END, d.lease_until,
    d.worker, NULL::timestamptz, d.detail, NULL::text, NULL::uuid,
    CASE WHEN d.reason = 'unknown-effect' THEN d.effect END, r.oddity, r.first,
    d.tried_ms
FROM oncebox.deliveries AS d
JOIN oncebox.routes AS t ON t.no = d.route
JOIN oncebox.sources AS s ON s.no = d.source
JOIN oncebox.receipts AS r ON r.id = d.receipt
WHERE (d.receipt, d.route) < ($1, $2)
  AND d.receipt >= $3
  AND d.receipt < $4
  AND ($5::uuid IS NULL OR d.receipt = $5)
  AND ($6::text IS NULL OR t.name = $6)
  AND ($7::text IS NULL OR s.name = $7)
  AND ($8::text IS NULL OR r.event_type LIKE $8)
  AND ($9::text IS NULL OR d.state = $9)
  AND ($10::text IS NULL OR d.reason = $10)
  AND ($11::text IS NULL OR starts_with(r.event_id, $11))
  AND ($12::text IS NULL OR r.object = $12)
ORDER BY d.receipt DESC, d.route DESC
LIMIT $13;
