SELECT route, state, reason, count(*), min(created_at)
FROM oncebox.finished
WHERE state = 'skipped'
GROUP BY route, state, reason;
