SELECT
    f.receipt, f.route, t.name, t.paused_at IS NOT NULL, s.name, r.event_id, r.event_type, r.object,
    r.version, r.received_at, f.state, f.reason, f.attempts, f.failures, f.crashes, f.snoozes,
    f.replays, NULL::timestamptz, NULL::timestamptz, NULL::text, f.finished_at, f.detail,
    f.summary, f.first, NULL::text, r.oddity, r.first, 0::bigint
FROM oncebox.finished AS f
JOIN oncebox.routes AS t ON t.no = f.route
JOIN oncebox.sources AS s ON s.no = f.source
JOIN oncebox.receipts AS r ON r.id = f.receipt
WHERE (f.receipt, f.route) < ($1, $2)
  AND f.receipt >= $3
  AND f.receipt < $4
  AND ($5::uuid IS NULL OR f.receipt = $5)
  AND ($6::text IS NULL OR t.name = $6)
  AND ($7::text IS NULL OR s.name = $7)
  AND ($8::text IS NULL OR r.event_type LIKE $8)
  AND ($9::text IS NULL OR f.state = $9)
  AND ($10::text IS NULL OR f.reason = $10)
  AND ($11::text IS NULL OR starts_with(r.event_id, $11))
  AND ($12::text IS NULL OR r.object = $12)
ORDER BY f.receipt DESC, f.route DESC
LIMIT $13;
