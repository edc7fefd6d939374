SELECT t.name, d.state, d.attempts
FROM deliveries AS d
JOIN routes AS t ON t.no = d.route
WHERE d.receipt = ?1
ORDER BY t.name;
