-- What a claim may take of a route: what became due within a span of time and is suspected so much
-- (?5), oldest first, or only the one that is named (?6). The next epoch is greater than any
-- before; its random end tells claims apart that a database gave out before and after it was
-- restored.
SELECT
    r.head, r.tail, d.route, d.source, d.created_at, d.lane, d.place, d.operation,
    d.ignores_stale, d.ignores_order,
    s.name, s.born_as, t.born_as, r.event_id, r.event_type, r.object, r.version, r.received_at,
    length(r.headers) + length(r.body), d.attempts, d.failures, d.crashes, d.snoozes, d.replays,
    (((d.epoch >> 20) + 1) << 20) | (random() & 1048575), r.oddity, r.first_head, r.first_tail,
    iif(r.oddity IN ('twin', 'conflict'), r.digest, NULL), d.tried_ms
FROM routes AS t
CROSS JOIN deliveries AS d ON d.route = t.no
CROSS JOIN receipts AS r ON r.head = d.receipt
CROSS JOIN sources AS s ON s.no = d.source
WHERE t.no = ?1
  AND t.paused_at IS NULL
  AND t.fill_after IS NULL
  AND d.due_at >= ?2
  AND d.due_at <= ?3
  AND d.state IN ('received', 'retrying')
  AND d.lost = ?5
  AND (?6 IS NULL OR d.receipt = ?6)
ORDER BY d.due_at, d.receipt
LIMIT ?4;
