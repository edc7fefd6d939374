SELECT c.receipt, c.tail, t.name, c.at, c.differs
FROM effect_conflicts AS c
JOIN routes AS t ON t.no = c.route
WHERE c.key = ?1
ORDER BY c.at, c.receipt, c.route
LIMIT ?2;
