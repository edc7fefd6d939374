-- An effect, and whether whoever is at it has a good lease. Of its conflicts no more are counted
-- than is asked for; -1 is for all.
SELECT
    e.key, e.kind, e.state, e.receipt, e.tail, e.route, t.name, e.attempt, e.at, e.result,
    e.unknowns,
    (SELECT count(*) FROM (SELECT 1 FROM effect_conflicts AS c WHERE c.key = e.key LIMIT ?3)),
    e.evidence_at, e.evidence,
    e.state = 'started' AND EXISTS (
        SELECT 1 FROM deliveries AS d
        WHERE d.receipt = e.receipt AND d.route = e.route AND d.state = 'processing'
          AND d.epoch = e.epoch AND d.lease_until > ?2
    ),
    e.epoch, e.digest
FROM effects AS e
JOIN routes AS t ON t.no = e.route
WHERE e.key = ?1;
