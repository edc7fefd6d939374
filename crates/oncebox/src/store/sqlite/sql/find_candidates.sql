-- What a claim may take of a route: what is due, oldest first. A delivery whose last lease was
-- lost is taken alone.
WITH alone AS MATERIALIZED (
    SELECT receipt FROM deliveries
    WHERE route = ?1 AND due_at <= ?2 AND lost AND state IN ('received', 'retrying')
    ORDER BY due_at, receipt
    LIMIT 1
),
due AS MATERIALIZED (
    SELECT receipt FROM deliveries
    WHERE route = ?1 AND due_at <= ?2 AND state IN ('received', 'retrying')
    ORDER BY due_at, receipt
    LIMIT iif(EXISTS (SELECT 1 FROM alone), 0, ?3)
)
SELECT
    r.head, r.tail, d.route, d.source, d.created_at, d.lane, d.place, d.operation,
    d.ignores_stale, d.ignores_order,
    s.name, s.born_as, t.born_as, r.event_id, r.event_type, r.object, r.version, r.received_at,
    length(r.headers) + length(r.body), d.attempts, d.failures, d.crashes, d.snoozes, d.replays
FROM (SELECT receipt FROM alone UNION ALL SELECT receipt FROM due) AS c
CROSS JOIN deliveries AS d ON d.receipt = c.receipt AND d.route = ?1
CROSS JOIN receipts AS r ON r.head = d.receipt
CROSS JOIN sources AS s ON s.no = d.source
CROSS JOIN routes AS t ON t.no = d.route
WHERE t.paused_at IS NULL
ORDER BY d.due_at, d.receipt;
