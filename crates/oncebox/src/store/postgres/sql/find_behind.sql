-- The deliveries that held ones wait for. Of an object: the one under a lease, else the first that
-- is open, or dead where the dead hold. Of an operation: the first.
SELECT d.receipt, d.route, o.receipt, r.event_id, o.state
FROM unnest($1::uuid[], $2::smallint[]) AS h (receipt, route)
JOIN oncebox.deliveries AS d ON d.receipt = h.receipt AND d.route = h.route
JOIN oncebox.routes AS t ON t.no = d.route
JOIN oncebox.deliveries AS o ON o.route = d.route AND o.receipt = CASE d.reason
    WHEN 'order' THEN coalesce(
        (
            SELECT p.receipt FROM oncebox.deliveries AS p
            WHERE p.route = d.route AND p.source = d.source AND p.lane = d.lane COLLATE "C"
              AND p.state = 'processing'
            LIMIT 1
        ),
        (
            SELECT p.receipt FROM oncebox.deliveries AS p
            WHERE p.route = d.route AND p.source = d.source AND p.lane = d.lane
              AND (p.place, p.receipt) < (d.place, d.receipt)
              AND p.reason IS DISTINCT FROM 'same-operation'
              AND (p.state <> 'dead' OR t.on_dead = 'hold')
            ORDER BY p.place, p.receipt
            LIMIT 1
        )
    )
    WHEN 'same-operation' THEN (
        SELECT p.receipt FROM oncebox.deliveries AS p
        WHERE p.route = d.route AND p.operation = d.operation AND p.receipt <> d.receipt
        ORDER BY p.state = 'processing' DESC, p.receipt
        LIMIT 1
    )
END
JOIN oncebox.receipts AS r ON r.id = o.receipt;
