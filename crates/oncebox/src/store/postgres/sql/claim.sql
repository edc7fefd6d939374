-- Claims due deliveries of routes without guards, oldest first, in one statement. Rows are picked
-- and locked in materialised parts, each of which runs once whatever the plan, and are changed by
-- their key: a join that ran the picking again would take more than wanted.
WITH wanted AS MATERIALIZED (
    SELECT w.route, w.most, w.floor, lost.receipt AS lost
    FROM unnest($1::smallint[], $2::bigint[], $3::timestamptz[]) AS w (route, most, floor)
    JOIN oncebox.routes AS r ON r.no = w.route AND r.paused_at IS NULL
    -- What a lease was lost of is claimed alone, so that it does not charge its neighbours.
    LEFT JOIN LATERAL (
        SELECT d.receipt
        FROM oncebox.deliveries AS d
        WHERE d.route = w.route
          AND d.lost
          AND d.state IN ('received', 'retrying')
          AND d.due_at <= statement_timestamp()
        ORDER BY d.due_at, d.receipt
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS lost ON true
),
picked AS MATERIALIZED (
    SELECT w.route, w.lost AS receipt, true AS alone
    FROM wanted AS w
    WHERE w.lost IS NOT NULL
    UNION ALL
    SELECT w.route, due.receipt, false AS alone
    FROM wanted AS w
    CROSS JOIN LATERAL (
        SELECT d.receipt
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
        worker = $5,
        lost = false
    FROM picked AS p
    WHERE d.receipt = p.receipt AND d.route = p.route
    RETURNING d.*, p.alone
)
SELECT
    d.receipt, d.route, d.epoch, d.source, s.name, s.born_as, t.born_as, r.event_id, r.event_type,
    r.object, r.version, r.received_at, octet_length(r.headers) + octet_length(r.body),
    d.attempts, d.failures, d.crashes, d.snoozes, d.replays,
    d.lane IS NOT NULL OR d.operation IS NOT NULL, d.due_at, d.alone, call.at, call.paused
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
    JOIN oncebox.sources AS s ON s.no = d.source
    JOIN oncebox.routes AS t ON t.no = d.route
    JOIN oncebox.receipts AS r ON r.id = d.receipt
) ON true
ORDER BY d.due_at, d.receipt;
