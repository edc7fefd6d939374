-- Claims due deliveries of routes without guards, oldest first, in one statement. Rows are picked
-- and locked in materialised parts, each of which runs once whatever the plan, and are changed
-- where they lie: a join that ran the picking again would take more than wanted, and one by key may
-- be planned as a walk over the whole table. A row that changed before it was locked is left. What
-- is told of their receipts is read afterwards, once it is known in which days they lie.
WITH wanted AS MATERIALIZED (
    SELECT w.route, w.most, w.floor, lost.tid AS lost
    FROM unnest($1::smallint[], $2::bigint[], $3::timestamptz[]) AS w (route, most, floor)
    CROSS JOIN LATERAL (
        SELECT 1 FROM oncebox.routes AS r WHERE r.no = w.route AND r.paused_at IS NULL OFFSET 0
    ) AS running
    -- What a lease was lost of is claimed alone, so that it does not charge its neighbours. The
    -- states are told so that only the index of what was lost fits.
    LEFT JOIN LATERAL (
        SELECT d.ctid AS tid
        FROM oncebox.deliveries AS d
        WHERE d.route = w.route
          AND d.lost
          AND d.state NOT IN ('processing', 'held', 'dead')
          AND d.due_at <= statement_timestamp()
        ORDER BY d.due_at, d.receipt
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS lost ON true
),
picked AS MATERIALIZED (
    SELECT w.lost AS tid, true AS alone
    FROM wanted AS w
    WHERE w.lost IS NOT NULL
    UNION ALL
    SELECT due.tid, false AS alone
    FROM wanted AS w
    CROSS JOIN LATERAL (
        SELECT d.ctid AS tid
        FROM oncebox.deliveries AS d
        WHERE d.route = w.route
          AND NOT d.lost
          AND d.state IN ('received', 'retrying')
          AND d.due_at >= w.floor
          AND d.due_at <= statement_timestamp()
        ORDER BY d.due_at, d.receipt
        LIMIT w.most
        FOR UPDATE SKIP LOCKED
    ) AS due
    WHERE w.lost IS NULL
),
leased AS (
    UPDATE oncebox.deliveries AS d
    SET
        state = 'processing',
        attempts = d.attempts + 1,
        epoch = (((d.epoch >> 20) + 1) << 20) | floor(random() * 1048576)::bigint,
        lease_until = statement_timestamp() + $4::bigint * interval '1 millisecond',
        worker = $5
    FROM picked AS p
    WHERE d.ctid = p.tid
    RETURNING d.*, p.alone
)
SELECT
    d.receipt, d.route, d.epoch, d.source, s.name, s.born_as, t.born_as, d.attempts, d.failures,
    d.crashes, d.snoozes, d.replays, d.lane IS NOT NULL OR d.operation IS NOT NULL, d.due_at,
    d.alone, call.at, call.paused, d.lease_until
FROM (
    SELECT
        statement_timestamp() AS at,
        (
            SELECT array_agg(t.no)
            FROM oncebox.routes AS t
            WHERE t.no = ANY ($1) AND t.paused_at IS NOT NULL
        ) AS paused
) AS call
LEFT JOIN (
    leased AS d
    CROSS JOIN LATERAL (
        SELECT s.name, s.born_as FROM oncebox.sources AS s WHERE s.no = d.source OFFSET 0
    ) AS s
    CROSS JOIN LATERAL (
        SELECT t.born_as FROM oncebox.routes AS t WHERE t.no = d.route OFFSET 0
    ) AS t
) ON true
ORDER BY d.due_at, d.receipt;
