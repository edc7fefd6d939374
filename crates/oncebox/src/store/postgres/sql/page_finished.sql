SELECT
    f.receipt, f.route, r.source, r.event_type, f.state, f.reason,
    t.skip_stale AND EXISTS (
        SELECT 1 FROM oncebox.lanes AS l
        WHERE l.route = f.route AND l.source = r.source AND l.object = r.object
          AND l.applied > r.version
    ),
    EXISTS (
        SELECT 1 FROM oncebox.operations AS o
        WHERE o.route = f.route AND o.key = f.operation AND o.receipt <> f.receipt
          AND abs(extract(epoch FROM o.received_at - f.created_at)) * 1000
            <= t.same_operation_ms
    )
    OR EXISTS (
        SELECT 1 FROM oncebox.finished AS o
        WHERE o.route = f.route AND o.operation = f.operation AND o.state = 'processed'
          AND o.receipt <> f.receipt
          AND abs(extract(epoch FROM o.created_at - f.created_at)) * 1000
            <= t.same_operation_ms
    ),
    t.ordered AND EXISTS (
        SELECT 1 FROM oncebox.deliveries AS o
        WHERE o.route = f.route AND o.source = r.source AND o.lane = r.object
          AND (o.place, o.receipt) < (coalesce(r.version, -9223372036854775808), f.receipt)
          AND (o.state <> 'dead' OR t.on_dead = 'hold')
          AND (o.reason IS NULL OR o.reason NOT IN ('twin', 'conflict'))
    ),
    EXISTS (
        SELECT 1 FROM oncebox.days AS y
        WHERE y.day = oncebox.day_of(f.receipt) AND y.state IN ('closing', 'gone')
    ),
    r.event_id
FROM oncebox.finished AS f
JOIN oncebox.routes AS t ON t.no = f.route
JOIN oncebox.receipts AS r ON r.id = f.receipt
JOIN oncebox.sources AS s ON s.no = r.source
WHERE (f.receipt, f.route) > ($1, $2)
  AND f.receipt >= $3
  AND f.receipt < $4
  AND ($5::uuid[] IS NULL OR f.receipt = ANY ($5))
  AND ($6::smallint[] IS NULL OR f.route = ANY ($6))
  AND CASE
      WHEN $7::text IS NOT NULL THEN s.name = $7
      -- Who names neither receipts nor routes means what was received, not what was sent.
      WHEN $5::uuid[] IS NULL AND $6::smallint[] IS NULL THEN s.name NOT LIKE 'outbox/%'
      ELSE true
  END
  AND ($8::text IS NULL OR r.event_type LIKE $8)
  AND ($9::text IS NULL OR f.state = $9)
  AND ($11 OR r.oddity IS NULL OR f.reason IS NULL OR f.reason <> 'discarded')
ORDER BY f.receipt, f.route
LIMIT $10;
