-- Gives leases to candidates that may run. They are locked by this transaction.
WITH leased AS (
    UPDATE oncebox.deliveries AS d
    SET
        state = 'processing',
        attempts = d.attempts + 1,
        epoch = (((d.epoch >> 20) + 1) << 20) | floor(random() * 1048576)::bigint,
        lease_until = statement_timestamp() + p.lease * interval '1 millisecond',
        worker = $4,
        lost = CASE WHEN p.sole THEN 3 ELSE d.lost END
    FROM unnest($1::uuid[], $2::smallint[], $3::bigint[], $5::boolean[])
        AS p (receipt, route, lease, sole)
    CROSS JOIN LATERAL (
        SELECT o.ctid AS tid
        FROM oncebox.deliveries AS o
        WHERE o.receipt = p.receipt AND o.route = p.route
        OFFSET 0
    ) AS o
    WHERE d.ctid = o.tid
    RETURNING d.*
)
SELECT
    d.receipt, d.route, d.epoch, d.source, s.name, s.born_as, t.born_as, d.attempts, d.failures,
    d.crashes, d.snoozes, d.replays, d.lane IS NOT NULL OR d.operation IS NOT NULL, d.tried_ms,
    d.lease_until
FROM leased AS d
CROSS JOIN LATERAL (
    SELECT s.name, s.born_as FROM oncebox.sources AS s WHERE s.no = d.source OFFSET 0
) AS s
CROSS JOIN LATERAL (
    SELECT t.born_as FROM oncebox.routes AS t WHERE t.no = d.route OFFSET 0
) AS t
ORDER BY d.due_at, d.receipt;
