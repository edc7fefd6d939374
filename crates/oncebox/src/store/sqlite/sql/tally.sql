-- Counts kept by triggers. The oldest of a state, whatever its reason, is the first row of its
-- index, or one of the few under a lease. How old the oldest is that was processed says only how
-- long it is kept.
WITH leased AS MATERIALIZED (
    SELECT d.route, min(d.created_at) AS oldest
    FROM deliveries AS d INDEXED BY deliveries_leased
    WHERE d.state = 'processing'
    GROUP BY d.route
)
SELECT
    c.route, c.state, nullif(c.reason, ''), c.count,
    CASE c.state
        WHEN 'received' THEN (
            SELECT d.created_at
            FROM deliveries AS d
            WHERE d.route = c.route AND d.state = 'received'
            ORDER BY d.receipt
            LIMIT 1
        )
        WHEN 'processing' THEN (SELECT l.oldest FROM leased AS l WHERE l.route = c.route)
        WHEN 'retrying' THEN (
            SELECT d.created_at
            FROM deliveries AS d
            WHERE d.route = c.route AND d.state = 'retrying'
            ORDER BY d.receipt
            LIMIT 1
        )
        WHEN 'held' THEN (
            SELECT d.created_at
            FROM deliveries AS d
            WHERE d.route = c.route AND d.state = 'held'
            ORDER BY d.receipt
            LIMIT 1
        )
        WHEN 'dead' THEN (
            SELECT d.created_at
            FROM deliveries AS d
            WHERE d.route = c.route AND d.state = 'dead'
            ORDER BY d.receipt
            LIMIT 1
        )
        WHEN 'skipped' THEN (
            SELECT d.created_at
            FROM finished AS d
            WHERE d.route = c.route AND d.state = 'skipped'
            ORDER BY d.receipt
            LIMIT 1
        )
    END
FROM delivery_counts AS c
WHERE c.count > 0
ORDER BY c.route, c.state, c.reason;
