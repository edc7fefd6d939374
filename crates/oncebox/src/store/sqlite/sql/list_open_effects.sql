-- Effects that are started (?5) or unknown, as they are read: few among very many.
SELECT
    e.key, e.kind, e.state, e.receipt, e.tail, e.route, t.name, e.attempt, e.at, e.result,
    e.unknowns, (SELECT count(*) FROM effect_conflicts AS c WHERE c.key = e.key),
    e.evidence_at, e.evidence,
    e.state = 'started' AND EXISTS (
        SELECT 1 FROM deliveries AS d
        WHERE d.receipt = e.receipt AND d.route = e.route AND d.state = 'processing'
          AND d.epoch = e.epoch AND d.lease_until > ?1
    ) AS live
FROM effects AS e INDEXED BY effects_open
CROSS JOIN routes AS t ON t.no = e.route
WHERE e.state <> 'done' AND live = ?5
  AND e.key >= ?2 AND e.key < ?3
  AND (?4 IS NULL OR e.kind = ?4)
  AND (?6 IS NULL OR (e.receipt, e.tail) = (?6, ?7))
ORDER BY e.key
LIMIT ?8;
