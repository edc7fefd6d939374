-- Gives leases to candidates that may run. They are locked by this transaction.
WITH leased AS (
    UPDATE oncebox.deliveries AS d
    SET
        state = 'processing',
        attempts = d.attempts + 1,
        epoch = (((d.epoch >> 20) + 1) << 20) | floor(random() * 1048576)::bigint,
        lease_until = statement_timestamp() + $3::bigint * interval '1 millisecond',
        worker = $4,
        lost = false
    FROM unnest($1::uuid[], $2::smallint[]) AS p (receipt, route)
    WHERE d.receipt = p.receipt
      AND d.route = p.route
      AND d.state IN ('received', 'retrying')
    RETURNING d.*
)
SELECT
    d.receipt, d.route, d.epoch, d.source, s.name, s.born_as, t.born_as, r.event_id, r.event_type,
    r.object, r.version, r.received_at, octet_length(r.headers) + octet_length(r.body),
    d.attempts, d.failures, d.crashes, d.snoozes, d.replays,
    d.lane IS NOT NULL OR d.operation IS NOT NULL
FROM leased AS d
JOIN oncebox.sources AS s ON s.no = d.source
JOIN oncebox.routes AS t ON t.no = d.route
JOIN oncebox.receipts AS r ON r.id = d.receipt
ORDER BY d.due_at, d.receipt;
