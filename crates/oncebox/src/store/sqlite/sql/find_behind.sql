-- The delivery that a held one waits for. Of its object: the one under a lease, else the first that
-- is open, or dead where the dead hold. Of its operation: the first.
SELECT r.head, r.tail, r.event_id, o.state
FROM deliveries AS d
CROSS JOIN routes AS t ON t.no = d.route
CROSS JOIN deliveries AS o ON o.route = d.route AND o.receipt = CASE d.reason
    WHEN 'order' THEN coalesce(
        (
            SELECT p.receipt FROM deliveries AS p
            WHERE p.route = d.route AND p.source = d.source AND p.lane = d.lane
              AND p.state = 'processing'
            LIMIT 1
        ),
        (
            SELECT p.receipt FROM deliveries AS p
            WHERE p.route = d.route AND p.source = d.source AND p.lane = d.lane
              AND (p.place, p.receipt) < (d.place, d.receipt)
              AND p.reason IS NOT 'same-operation'
              AND (p.state <> 'dead' OR t.on_dead = 'hold')
            ORDER BY p.place, p.receipt
            LIMIT 1
        )
    )
    WHEN 'same-operation' THEN (
        SELECT p.receipt FROM deliveries AS p
        WHERE p.route = d.route AND p.operation = d.operation AND p.receipt <> d.receipt
        ORDER BY p.state = 'processing' DESC, p.receipt
        LIMIT 1
    )
END
CROSS JOIN receipts AS r ON r.head = o.receipt
WHERE d.receipt = ?1 AND d.route = ?2;
