SELECT
    d.receipt, d.route, r.source, r.event_type, d.state, d.reason,
    t.skip_stale AND EXISTS (
        SELECT 1 FROM oncebox.lanes AS l
        WHERE l.route = d.route AND l.source = r.source AND l.object = r.object
          AND l.applied > r.version
    ),
    EXISTS (
        SELECT 1 FROM oncebox.operations AS o
        WHERE o.route = d.route AND o.key = d.operation AND o.receipt <> d.receipt
          AND abs(extract(epoch FROM o.received_at - d.created_at)) * 1000
            <= t.same_operation_ms
    )
    OR EXISTS (
        SELECT 1 FROM oncebox.finished AS o
        WHERE o.route = d.route AND o.operation = d.operation AND o.state = 'processed'
          AND o.receipt <> d.receipt
          AND abs(extract(epoch FROM o.created_at - d.created_at)) * 1000
            <= t.same_operation_ms
    ),
    t.ordered AND EXISTS (
        SELECT 1 FROM oncebox.deliveries AS o
        WHERE o.route = d.route AND o.source = r.source AND o.lane = r.object
          AND (o.place, o.receipt) < (d.place, d.receipt)
          AND (o.state <> 'dead' OR t.on_dead = 'hold')
          AND (o.reason IS NULL OR o.reason NOT IN ('twin', 'conflict'))
    ),
    EXISTS (
        SELECT 1 FROM oncebox.days AS y
        WHERE y.day = oncebox.day_of(d.receipt) AND y.state IN ('closing', 'gone')
    ),
    r.event_id
FROM oncebox.deliveries AS d
JOIN oncebox.routes AS t ON t.no = d.route
JOIN oncebox.receipts AS r ON r.id = d.receipt
JOIN oncebox.sources AS s ON s.no = r.source
WHERE (d.receipt, d.route) > ($1, $2)
  AND d.receipt >= $3
  AND d.receipt < $4
  AND ($5::uuid[] IS NULL OR d.receipt = ANY ($5))
  AND ($6::smallint[] IS NULL OR d.route = ANY ($6))
  AND CASE
      WHEN $7::text IS NOT NULL THEN s.name = $7
      -- Who names neither receipts nor routes means what was received, not what was sent.
      WHEN $5::uuid[] IS NULL AND $6::smallint[] IS NULL THEN s.name NOT LIKE 'outbox/%'
      ELSE true
  END
  AND ($8::text IS NULL OR r.event_type LIKE $8)
  AND ($9::text IS NULL OR d.state = $9)
  AND ($11 OR d.reason IS NULL OR d.reason NOT IN ('twin', 'conflict'))
ORDER BY d.receipt, d.route
LIMIT $10;
