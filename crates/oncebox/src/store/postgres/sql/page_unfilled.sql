-- Receipts that the routes never took. A page that ends amid the routes of a receipt may have made
-- it routed: it is gone on with all the same.
SELECT
    r.id, t.no, r.source, r.event_type, NULL::text, NULL::text,
    t.skip_stale AND EXISTS (
        SELECT 1 FROM oncebox.lanes AS l
        WHERE l.route = t.no AND l.source = r.source AND l.object = r.object
          AND l.applied > r.version
    ),
    false,
    t.ordered AND EXISTS (
        SELECT 1 FROM oncebox.deliveries AS o
        WHERE o.route = t.no AND o.source = r.source AND o.lane = r.object
          AND (o.place, o.receipt) < (coalesce(r.version, -9223372036854775808), r.id)
          AND (o.state <> 'dead' OR t.on_dead = 'hold')
          AND (o.reason IS NULL OR o.reason NOT IN ('twin', 'conflict'))
    ),
    EXISTS (
        SELECT 1 FROM oncebox.days AS y
        WHERE y.day = oncebox.day_of(r.id) AND y.state IN ('closing', 'gone')
    ),
    r.event_id
FROM oncebox.receipts AS r
JOIN oncebox.sources AS s ON s.no = r.source
JOIN oncebox.routes AS t ON t.no = ANY ($6)
WHERE (r.id, t.no) > ($1, $2)
  AND r.id >= $1
  AND r.id >= $3
  AND r.id < $4
  AND ($5::uuid[] IS NULL OR r.id = ANY ($5))
  AND ($7::text IS NULL OR s.name = $7)
  AND s.name NOT LIKE 'outbox/%'
  AND ($8::text IS NULL OR r.event_type LIKE $8)
  AND (NOT $9 OR r.routes = 0 OR r.id = $1)
  AND NOT EXISTS (
      SELECT 1 FROM oncebox.deliveries AS d WHERE d.receipt = r.id AND d.route = t.no
  )
  AND NOT EXISTS (SELECT 1 FROM oncebox.finished AS f WHERE f.receipt = r.id AND f.route = t.no)
ORDER BY r.id, t.no
LIMIT $10;
