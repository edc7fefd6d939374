-- What has to be locked before deliveries are changed. None of it changes while one is open.
SELECT d.receipt, d.route, d.source, d.lane, d.place, d.operation, d.created_at
FROM unnest($1::uuid[], $2::smallint[]) AS w (receipt, route)
JOIN oncebox.deliveries AS d ON d.receipt = w.receipt AND d.route = w.route
WHERE d.lane IS NOT NULL OR d.operation IS NOT NULL;
