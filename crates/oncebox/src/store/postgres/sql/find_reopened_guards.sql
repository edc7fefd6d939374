-- What has to be locked before deliveries are opened again: what they share with others, or will
-- once they are open.
SELECT
    w.receipt,
    w.route,
    r.source,
    CASE
        WHEN t.ordered OR t.skip_stale OR d.lane IS NOT NULL OR f.laned THEN r.object
    END,
    coalesce(r.version, -9223372036854775808),
    coalesce(d.operation, f.operation),
    r.received_at
FROM unnest($1::uuid[], $2::smallint[]) AS w (receipt, route)
JOIN oncebox.routes AS t ON t.no = w.route
CROSS JOIN LATERAL (
    SELECT r.source, r.object, r.version, r.received_at
    FROM oncebox.receipts AS r
    WHERE r.id = w.receipt AND r.id = ANY ($1)
    OFFSET 0
) AS r
LEFT JOIN LATERAL (
    SELECT d.lane, d.operation
    FROM oncebox.deliveries AS d
    WHERE d.receipt = w.receipt AND d.route = w.route
    OFFSET 0
) AS d ON true
LEFT JOIN LATERAL (
    SELECT f.laned, f.operation
    FROM oncebox.finished AS f
    WHERE f.receipt = w.receipt AND f.receipt = ANY ($1) AND f.route = w.route
    OFFSET 0
) AS f ON true;
