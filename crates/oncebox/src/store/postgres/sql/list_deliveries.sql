SELECT d.receipt, t.name, d.state, d.reason, d.attempts
FROM (
    SELECT receipt, route, state, reason, attempts
    FROM oncebox.deliveries
    WHERE receipt = ANY ($1)
    UNION ALL
    SELECT receipt, route, state, reason, attempts
    FROM oncebox.finished
    WHERE receipt = ANY ($1)
) AS d
JOIN oncebox.routes AS t ON t.no = d.route
ORDER BY d.receipt, t.name;
