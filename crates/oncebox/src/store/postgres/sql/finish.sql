-- Ends a batch of attempts in one statement. Only under a lease that is the latest and has not run
-- out. Rows are locked in one order: leases may be extended at the same time.
WITH mine AS MATERIALIZED (
    SELECT d.receipt, d.route, d.epoch, e.next, e.pause, e.took, e.status, e.detail, e.summary
    FROM unnest(
        $1::uuid[], $2::smallint[], $3::bigint[], $4::text[], $5::bigint[], $6::integer[],
        $7::smallint[], $8::text[], $9::text[]
    ) AS e (receipt, route, lease, next, pause, took, status, detail, summary)
    JOIN oncebox.deliveries AS d
        ON d.receipt = e.receipt AND d.route = e.route AND d.epoch = e.lease
    WHERE d.state = 'processing' AND d.lease_until > statement_timestamp()
    ORDER BY d.receipt, d.route
    FOR UPDATE OF d
),
gone AS (
    DELETE FROM oncebox.deliveries AS d
    USING mine AS m
    WHERE d.receipt = m.receipt AND d.route = m.route AND m.next IN ('processed', 'stale')
    RETURNING d.*, m.next, m.took, m.status, m.detail AS note, m.summary
),
kept AS (
    INSERT INTO oncebox.finished (
        receipt, route, source, state, reason, created_at, finished_at, epoch, attempts, failures,
        crashes, snoozes, replays, laned, operation, status, took_ms, detail, summary
    )
    SELECT
        receipt, route, source,
        CASE next WHEN 'stale' THEN 'skipped' ELSE 'processed' END,
        CASE next WHEN 'stale' THEN 'stale' END,
        created_at, statement_timestamp(), epoch, attempts, failures, crashes, snoozes, replays,
        lane IS NOT NULL, operation, status, took, note, summary
    FROM gone
),
back AS (
    UPDATE oncebox.deliveries AS d
    SET
        state = CASE
            WHEN m.next = 'dead' THEN 'dead'
            WHEN m.next = 'returned' AND d.attempts <= 1 THEN 'received'
            ELSE 'retrying'
        END,
        attempts = d.attempts - (m.next = 'returned')::integer,
        failures = d.failures + (m.next IN ('retry', 'dead'))::integer,
        snoozes = d.snoozes + (m.next = 'snooze')::integer,
        due_at = statement_timestamp() + m.pause * interval '1 millisecond',
        lease_until = NULL,
        worker = NULL,
        detail = CASE m.next WHEN 'returned' THEN d.detail ELSE m.detail END
    FROM mine AS m
    WHERE d.receipt = m.receipt AND d.route = m.route AND m.next NOT IN ('processed', 'stale')
    RETURNING d.*, m.next, m.took, m.status
),
tried AS (
    INSERT INTO oncebox.attempts (
        receipt, route, epoch, number, replays, ended_at, took_ms, outcome, status, detail
    )
    SELECT
        receipt, route, epoch, attempts, replays, statement_timestamp(), took, next, status, detail
    FROM back
    WHERE next <> 'returned'
)
SELECT receipt, route, epoch FROM mine;
