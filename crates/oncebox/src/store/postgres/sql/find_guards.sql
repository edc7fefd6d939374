-- What has to be locked before deliveries are changed. None of it changes while one is open.
SELECT d.receipt, d.route, d.source, d.lane, d.place, d.operation, d.created_at
FROM unnest($1::uuid[], $2::smallint[]) AS w (receipt, route)
CROSS JOIN LATERAL (
    SELECT d.*
    FROM oncebox.deliveries AS d
    WHERE d.receipt = w.receipt AND d.route = w.route
    OFFSET 0
) AS d
WHERE d.lane IS NOT NULL OR d.operation IS NOT NULL;
