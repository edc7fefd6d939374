-- Of its conflicts no more are counted than is asked for; NULL is for all.
SELECT
    e.key, e.kind, e.state, e.receipt, e.route, e.route_name, e.attempt, e.at, e.result,
    e.unknowns,
    (
        SELECT count(*)
        FROM (SELECT FROM oncebox.effect_conflicts AS c WHERE c.key = e.key LIMIT $2) AS counted
    ),
    e.evidence_at, e.evidence
FROM oncebox.known_effects AS e
WHERE e.key = $1;
