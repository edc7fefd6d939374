SELECT t.name, d.state, d.reason, d.attempts
FROM (
    SELECT route, state, reason, attempts FROM deliveries WHERE receipt = ?1
    UNION ALL
    SELECT route, state, reason, attempts FROM finished WHERE receipt = ?1
) AS d
JOIN routes AS t ON t.no = d.route
ORDER BY t.name;
