SELECT route, state, reason, count(*), min(created_at)
FROM oncebox.deliveries
GROUP BY route, state, reason;
