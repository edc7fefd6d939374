-- Claims due deliveries of routes without guards, oldest first, in one statement. Rows are picked
-- and locked in materialised parts, each of which runs once whatever the plan, and are changed
-- where they lie: a join that ran the picking again would take more than wanted, and one by key may
-- be planned as a walk over the whole table. A row that changed before it was locked is left. What
-- is told of their receipts is read afterwards, once it is known in which days they lie.
WITH wanted AS MATERIALIZED (
    SELECT w.route, w.most, w.floor, w.lease, suspect.lost
    FROM unnest($1::smallint[], $2::bigint[], $3::timestamptz[], $4::bigint[])
        AS w (route, most, floor, lease)
    CROSS JOIN LATERAL (
        SELECT 1 FROM oncebox.routes AS r WHERE r.no = w.route AND r.paused_at IS NULL OFFSET 0
    ) AS running
    -- What a lease was lost of is claimed apart, the least suspected first. The states are told so
    -- that only the index of what was lost fits.
    LEFT JOIN LATERAL (
        SELECT d.lost
        FROM oncebox.deliveries AS d
        WHERE d.route = w.route
          AND d.lost > 0
          AND d.state NOT IN ('processing', 'held', 'dead')
          AND d.due_at <= statement_timestamp()
        ORDER BY d.lost, d.due_at, d.receipt
        LIMIT 1
    ) AS suspect ON true
),
-- As many as `Suspicion::group` says.
suspects AS MATERIALIZED (
    SELECT w.route, w.lease, d.tid, count(*) OVER (PARTITION BY w.route) = 1 AS sole
    FROM wanted AS w
    CROSS JOIN LATERAL (
        SELECT d.ctid AS tid
        FROM oncebox.deliveries AS d
        WHERE d.route = w.route
          AND d.lost = w.lost
          AND d.lost > 0
          AND d.state NOT IN ('processing', 'held', 'dead')
          AND d.due_at <= statement_timestamp()
        ORDER BY d.due_at, d.receipt
        LIMIT CASE w.lost WHEN 1 THEN w.most WHEN 2 THEN greatest((w.most + 7) / 8, 1) ELSE 1 END
        FOR UPDATE SKIP LOCKED
    ) AS d
    WHERE w.lost IS NOT NULL
),
picked AS MATERIALIZED (
    SELECT s.tid, s.lease, true AS alone, s.sole
    FROM suspects AS s
    UNION ALL
    SELECT due.tid, w.lease, false AS alone, false AS sole
    FROM wanted AS w
    CROSS JOIN LATERAL (
        SELECT d.ctid AS tid
        FROM oncebox.deliveries AS d
        WHERE d.route = w.route
          AND d.lost = 0
          AND d.state IN ('received', 'retrying')
          AND d.due_at >= w.floor
          AND d.due_at <= statement_timestamp()
        ORDER BY d.due_at, d.receipt
        LIMIT w.most
        FOR UPDATE SKIP LOCKED
    ) AS due
    WHERE NOT EXISTS (SELECT 1 FROM suspects AS s WHERE s.route = w.route)
),
leased AS (
    UPDATE oncebox.deliveries AS d
    SET
        state = 'processing',
        attempts = d.attempts + 1,
        epoch = (((d.epoch >> 20) + 1) << 20) | floor(random() * 1048576)::bigint,
        lease_until = statement_timestamp() + p.lease * interval '1 millisecond',
        worker = $5,
        lost = CASE WHEN p.sole THEN 3 ELSE d.lost END
    FROM picked AS p
    WHERE d.ctid = p.tid
    RETURNING d.*, p.alone
)
SELECT
    d.receipt, d.route, d.epoch, d.source, s.name, s.born_as, t.born_as, d.attempts, d.failures,
    d.crashes, d.snoozes, d.replays, d.lane IS NOT NULL OR d.operation IS NOT NULL, d.tried_ms,
    d.due_at, d.alone, call.at, call.paused, d.lease_until
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
