-- What was recorded of a step of a delivery that is done.
SELECT e.result
FROM oncebox.effects AS e
JOIN oncebox.routes AS t ON t.no = $2
WHERE e.key = $1::uuid || '/' || t.born_as || '/' || $3 AND e.state = 'done';
