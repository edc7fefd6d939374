SELECT
    r.head, r.tail, d.route, r.source, r.event_type, d.state, d.reason,
    t.skip_stale AND EXISTS (
        SELECT 1 FROM lanes AS l
        WHERE l.route = d.route AND l.source = r.source AND l.object = r.object
          AND l.applied > r.version
    ),
    EXISTS (
        SELECT 1 FROM operations AS o
        WHERE o.route = d.route AND o.key = d.operation AND o.head <> d.receipt
          AND abs(o.received_at - d.created_at) <= t.same_operation_ms
    )
    OR EXISTS (
        SELECT 1 FROM finished AS o
        WHERE o.route = d.route AND o.operation = d.operation AND o.state = 'processed'
          AND o.receipt <> d.receipt
          AND abs(o.created_at - d.created_at) <= t.same_operation_ms
    ),
    t.ordered AND EXISTS (
        SELECT 1 FROM deliveries AS o
        WHERE o.route = d.route AND o.source = r.source AND o.lane = r.object
          AND (o.place, o.receipt) < (d.place, d.receipt)
          AND (o.state <> 'dead' OR t.on_dead = 'hold')
          AND (o.reason IS NULL OR o.reason NOT IN ('twin', 'conflict'))
    ),
    false,
    r.event_id
FROM deliveries AS d
CROSS JOIN routes AS t ON t.no = d.route
CROSS JOIN receipts AS r ON r.head = d.receipt
CROSS JOIN sources AS s ON s.no = r.source
WHERE (d.receipt, d.route) > (?1, ?2)
  AND d.receipt < ?3
  AND (?4 IS NULL OR d.route IN (SELECT value FROM json_each(?4)))
  AND (?5 IS NULL OR s.name = ?5)
  AND (?8 OR s.name NOT GLOB 'outbox/*')
  AND (?6 IS NULL OR r.event_type GLOB ?6)
  AND (?7 IS NULL OR d.state = ?7)
  AND (?10 OR d.reason IS NULL OR d.reason NOT IN ('twin', 'conflict'))
ORDER BY d.receipt, d.route
LIMIT ?9;
