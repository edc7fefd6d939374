SELECT
    r.head, r.tail, f.route, r.source, r.event_type, f.state, f.reason,
    t.skip_stale AND EXISTS (
        SELECT 1 FROM lanes AS l
        WHERE l.route = f.route AND l.source = r.source AND l.object = r.object
          AND l.applied > r.version
    ),
    EXISTS (
        SELECT 1 FROM operations AS o
        WHERE o.route = f.route AND o.key = f.operation AND o.head <> f.receipt
          AND abs(o.received_at - f.created_at) <= t.same_operation_ms
    )
    OR EXISTS (
        SELECT 1 FROM finished AS o
        WHERE o.route = f.route AND o.operation = f.operation AND o.state = 'processed'
          AND o.receipt <> f.receipt
          AND abs(o.created_at - f.created_at) <= t.same_operation_ms
    ),
    t.ordered AND EXISTS (
        SELECT 1 FROM deliveries AS o
        WHERE o.route = f.route AND o.source = r.source AND o.lane = r.object
          AND (o.place, o.receipt) < (coalesce(r.version, -9223372036854775808), f.receipt)
          AND (o.state <> 'dead' OR t.on_dead = 'hold')
          AND (o.reason IS NULL OR o.reason NOT IN ('twin', 'conflict'))
    ),
    false,
    r.event_id
FROM finished AS f
CROSS JOIN routes AS t ON t.no = f.route
CROSS JOIN receipts AS r ON r.head = f.receipt
CROSS JOIN sources AS s ON s.no = r.source
WHERE (f.receipt, f.route) > (?1, ?2)
  AND f.receipt < ?3
  AND (?4 IS NULL OR f.route IN (SELECT value FROM json_each(?4)))
  AND (?5 IS NULL OR s.name = ?5)
  AND (?8 OR s.name NOT GLOB 'outbox/*')
  AND (?6 IS NULL OR r.event_type GLOB ?6)
  AND (?7 IS NULL OR f.state = ?7)
  AND (?10 OR r.oddity IS NULL OR f.reason IS NULL OR f.reason <> 'discarded')
ORDER BY f.receipt, f.route
LIMIT ?9;
