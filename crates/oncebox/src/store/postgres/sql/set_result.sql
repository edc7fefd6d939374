-- Records what came of a step, by the attempt that does it.
UPDATE oncebox.effects AS e
SET result = $5
FROM oncebox.routes AS t
WHERE t.no = $2
  AND e.key = $1::uuid || '/' || t.born_as || '/' || $4
  AND e.state = 'done'
  AND e.receipt = $1
  AND e.route = $2
  AND e.epoch = $3;
