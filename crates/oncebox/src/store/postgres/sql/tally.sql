-- Folded counts and what is not folded yet. The oldest of a state, whatever its reason, is the
-- first row of its index, or one of the few under a lease. How old the oldest is that was processed
-- says only how long it is kept.
WITH leased AS MATERIALIZED (
    SELECT d.route, min(d.created_at) AS oldest
    FROM oncebox.deliveries AS d
    WHERE d.state = 'processing' AND d.lease_until IS NOT NULL
    GROUP BY d.route
)
SELECT
    c.route, c.state, nullif(c.reason, ''), c.count,
    CASE c.state
        WHEN 'received' THEN (
            SELECT d.created_at
            FROM oncebox.deliveries AS d
            WHERE d.route = c.route AND d.state = 'received'
            ORDER BY d.receipt
            LIMIT 1
        )
        WHEN 'processing' THEN (SELECT l.oldest FROM leased AS l WHERE l.route = c.route)
        WHEN 'retrying' THEN (
            SELECT d.created_at
            FROM oncebox.deliveries AS d
            WHERE d.route = c.route AND d.state = 'retrying'
            ORDER BY d.receipt
            LIMIT 1
        )
        WHEN 'held' THEN (
            SELECT d.created_at
            FROM oncebox.deliveries AS d
            WHERE d.route = c.route AND d.state = 'held'
            ORDER BY d.receipt
            LIMIT 1
        )
        WHEN 'dead' THEN (
            SELECT d.created_at
            FROM oncebox.deliveries AS d
            WHERE d.route = c.route AND d.state = 'dead'
            ORDER BY d.receipt
            LIMIT 1
        )
        WHEN 'skipped' THEN (
            SELECT d.created_at
            FROM oncebox.finished AS d
            WHERE d.route = c.route AND d.state = 'skipped'
            ORDER BY d.receipt
            LIMIT 1
        )
    END
FROM (
    SELECT n.route, n.state, n.reason, sum(n.count)::bigint AS count
    FROM (
        SELECT k.route, k.state, k.reason, k.count FROM oncebox.delivery_counts AS k
        UNION ALL
        SELECT d.route, d.state, d.reason, d.came - d.went FROM oncebox.delivery_deltas AS d
    ) AS n
    GROUP BY n.route, n.state, n.reason
    HAVING sum(n.count) > 0
) AS c
ORDER BY c.route, c.state, c.reason;
