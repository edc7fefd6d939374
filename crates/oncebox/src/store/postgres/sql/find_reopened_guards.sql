-- What has to be locked before deliveries are opened again: what they share with others, or will
-- once they are open.
SELECT
    w.receipt,
    w.route,
    r.source,
    CASE
        WHEN d.receipt IS NOT NULL THEN d.lane
        WHEN f.laned OR (f.receipt IS NULL AND (t.ordered OR t.skip_stale)) THEN r.object
    END,
    coalesce(r.version, -9223372036854775808),
    coalesce(d.operation, f.operation),
    r.received_at
FROM unnest($1::uuid[], $2::smallint[]) AS w (receipt, route)
JOIN oncebox.receipts AS r ON r.id = w.receipt
JOIN oncebox.routes AS t ON t.no = w.route
LEFT JOIN oncebox.deliveries AS d ON d.receipt = w.receipt AND d.route = w.route
LEFT JOIN oncebox.finished AS f ON f.receipt = w.receipt AND f.route = w.route;
