-- Effects that are started or unknown, as they are to be read: few among very many. They are found
-- by their states, whatever else is asked for.
SELECT
    e.key, e.kind, e.state, e.receipt, e.route, e.route_name, e.attempt, e.at, e.result,
    e.unknowns, e.conflicts, e.evidence_at, e.evidence
FROM (
    SELECT e.* FROM oncebox.known_effects AS e WHERE e.written IN ('started', 'unknown') OFFSET 0
) AS e
WHERE e.key >= $1
  AND e.key > $2
  AND e.key < $3
  AND ($4::text IS NULL OR e.kind = $4)
  AND e.state = $5
  AND ($7::uuid IS NULL OR e.receipt = $7)
ORDER BY e.key
LIMIT $6;
