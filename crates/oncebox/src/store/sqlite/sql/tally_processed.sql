SELECT route, state, reason, count(*), min(created_at)
FROM finished
WHERE state = 'processed'
GROUP BY route;
