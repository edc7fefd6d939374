SELECT w.receipt, w.route, coalesce(d.state, f.state)
FROM unnest($1::uuid[], $2::smallint[]) AS w (receipt, route)
LEFT JOIN oncebox.deliveries AS d ON d.receipt = w.receipt AND d.route = w.route
LEFT JOIN oncebox.finished AS f ON f.receipt = w.receipt AND f.route = w.route;
