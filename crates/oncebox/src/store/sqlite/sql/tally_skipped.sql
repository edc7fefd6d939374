SELECT route, state, reason, count(*), min(created_at)
FROM finished
WHERE state = 'skipped'
GROUP BY route, reason;
