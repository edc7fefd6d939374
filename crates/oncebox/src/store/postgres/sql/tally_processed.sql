SELECT route, state, reason, count(*), min(created_at)
FROM oncebox.finished
WHERE state = 'processed'
GROUP BY route, state, reason;
