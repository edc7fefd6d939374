-- Effects of one receipt's deliveries: few, and found by it, whatever else is asked for.
SELECT
    e.key, e.kind, e.state, e.receipt, e.route, e.route_name, e.attempt, e.at, e.result,
    e.unknowns, e.conflicts, e.evidence_at, e.evidence
FROM (
    SELECT e.* FROM oncebox.known_effects AS e WHERE e.receipt = $7 OFFSET 0
) AS e
WHERE e.key >= $1
  AND e.key > $2
  AND e.key < $3
  AND ($4::text IS NULL OR e.kind = $4)
  AND ($5::text IS NULL OR e.state = $5)
ORDER BY e.key
LIMIT $6;
