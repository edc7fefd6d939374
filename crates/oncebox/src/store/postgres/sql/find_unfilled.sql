-- The next open deliveries of a route in the order of their receipts, whatever their state: each
-- state has an index of its own.
SELECT u.receipt
FROM (
    SELECT n.receipt FROM (
        SELECT d.receipt
        FROM oncebox.deliveries AS d
        WHERE d.route = $1 AND d.state = 'received' AND d.receipt > $2
        ORDER BY d.receipt
        LIMIT $3
    ) AS n
    UNION ALL
    SELECT n.receipt FROM (
        SELECT d.receipt
        FROM oncebox.deliveries AS d
        WHERE d.route = $1 AND d.state = 'retrying' AND d.receipt > $2
        ORDER BY d.receipt
        LIMIT $3
    ) AS n
    UNION ALL
    SELECT n.receipt FROM (
        SELECT d.receipt
        FROM oncebox.deliveries AS d
        WHERE d.route = $1 AND d.state = 'dead' AND d.receipt > $2
        ORDER BY d.receipt
        LIMIT $3
    ) AS n
    UNION ALL
    SELECT n.receipt FROM (
        SELECT d.receipt
        FROM oncebox.deliveries AS d
        WHERE d.route = $1 AND d.state = 'held' AND d.receipt > $2
        ORDER BY d.receipt
        LIMIT $3
    ) AS n
    UNION ALL
    SELECT n.receipt FROM (
        SELECT d.receipt
        FROM oncebox.deliveries AS d
        WHERE d.state = 'processing' AND d.lease_until IS NOT NULL
          AND d.route = $1 AND d.receipt > $2
        ORDER BY d.receipt
        LIMIT $3
    ) AS n
) AS u
ORDER BY u.receipt
LIMIT $3;
