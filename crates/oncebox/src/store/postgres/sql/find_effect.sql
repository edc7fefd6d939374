SELECT
    e.key, e.kind, e.state, e.receipt, e.route, e.route_name, e.attempt, e.at, e.result,
    e.unknowns, e.conflicts, e.evidence_at, e.evidence
FROM oncebox.known_effects AS e
WHERE e.key = $1;
