SELECT r.start, r.route, r.state, nullif(r.reason, ''), r.count
FROM oncebox.delivery_rollups AS r
WHERE r.span = $1 AND r.start BETWEEN $2 AND $3
ORDER BY r.start, r.route, r.state, r.reason;
