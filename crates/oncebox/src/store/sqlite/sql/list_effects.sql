-- Effects in the order of their keys, from one key to before another.
SELECT
    e.key, e.kind, e.state, e.receipt, e.tail, e.route, t.name, e.attempt, e.at, e.result,
    e.unknowns, (SELECT count(*) FROM effect_conflicts AS c WHERE c.key = e.key),
    e.evidence_at, e.evidence,
    e.state = 'started' AND EXISTS (
        SELECT 1 FROM deliveries AS d
        WHERE d.receipt = e.receipt AND d.route = e.route AND d.state = 'processing'
          AND d.epoch = e.epoch AND d.lease_until > ?1
    )
FROM effects AS e
CROSS JOIN routes AS t ON t.no = e.route
WHERE e.key >= ?2 AND e.key < ?3
  AND (?4 IS NULL OR e.kind = ?4)
  AND (?5 IS NULL OR e.state = ?5)
ORDER BY e.key
LIMIT ?6;
