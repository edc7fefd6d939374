-- Who did an effect, and what was recorded with it.
SELECT e.receipt, t.name, e.attempt, e.at, e.result
FROM oncebox.effects AS e
JOIN oncebox.routes AS t ON t.no = e.route
WHERE e.key = $1;
