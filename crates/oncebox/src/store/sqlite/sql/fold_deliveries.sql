-- What came into a state since the last time came in this minute.
INSERT INTO delivery_rollups (span, start, route, state, reason, count)
SELECT s.span, ?1 - ?1 % s.span, c.route, c.state, c.reason, c.came - c.folded
FROM delivery_counts AS c
CROSS JOIN (SELECT 1 AS span UNION ALL SELECT 60) AS s
WHERE c.came > c.folded
ON CONFLICT (span, start, route, state, reason) DO UPDATE SET count = count + excluded.count;
