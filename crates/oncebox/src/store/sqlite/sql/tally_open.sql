SELECT route, state, reason, count(*), min(created_at)
FROM deliveries
GROUP BY route, state, reason;
