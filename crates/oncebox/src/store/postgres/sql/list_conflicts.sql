SELECT c.receipt, t.name, c.at, c.differs
FROM oncebox.effect_conflicts AS c
JOIN oncebox.routes AS t ON t.no = c.route
WHERE c.key = $1
ORDER BY c.at, c.receipt, c.route
LIMIT $2;
