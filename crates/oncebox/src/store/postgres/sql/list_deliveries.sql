SELECT d.receipt, t.name, d.state, d.attempts
FROM oncebox.deliveries AS d
JOIN oncebox.routes AS t ON t.no = d.route
WHERE d.receipt = ANY ($1)
ORDER BY d.receipt, t.name;
