-- Receipts that the routes never took. A page that ends amid the routes of a receipt may have made
-- it routed: it is gone on with all the same.
SELECT
    r.head, r.tail, t.no, r.source, r.event_type, NULL, NULL,
    t.skip_stale AND EXISTS (
        SELECT 1 FROM lanes AS l
        WHERE l.route = t.no AND l.source = r.source AND l.object = r.object
          AND l.applied > r.version
    ),
    false,
    t.ordered AND EXISTS (
        SELECT 1 FROM deliveries AS o
        WHERE o.route = t.no AND o.source = r.source AND o.lane = r.object
          AND (o.place, o.receipt) < (coalesce(r.version, -9223372036854775808), r.head)
          AND (o.state <> 'dead' OR t.on_dead = 'hold')
          AND (o.reason IS NULL OR o.reason NOT IN ('twin', 'conflict'))
    ),
    false,
    r.event_id
FROM receipts AS r
CROSS JOIN sources AS s ON s.no = r.source
CROSS JOIN routes AS t ON t.no IN (SELECT value FROM json_each(?4))
WHERE r.head >= ?1
  AND (r.head > ?1 OR t.no > ?2)
  AND r.head < ?3
  AND (?5 IS NULL OR s.name = ?5)
  AND s.name NOT GLOB 'outbox/*'
  AND (?6 IS NULL OR r.event_type GLOB ?6)
  AND (NOT ?7 OR r.routes = 0 OR r.head = ?1)
  AND NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.receipt = r.head AND d.route = t.no)
  AND NOT EXISTS (SELECT 1 FROM finished AS f WHERE f.receipt = r.head AND f.route = t.no)
ORDER BY r.head, t.no
LIMIT ?8;
