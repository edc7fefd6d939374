-- Ends a batch of attempts in one statement, each only under a lease that is the latest and has not
-- run out; only what is under a lease has an end of it. Rows are changed where they lie; see
-- claim.sql. One that is locked, for instance to extend its lease, is left: no ending waits for
-- another. One that shares a lane or an operation is ended only by the statements that lock those,
-- and only in the lane that they locked: its route may have begun to guard the object meanwhile.
WITH mine AS MATERIALIZED (
    SELECT d.tid, e.next, e.pause, e.took, e.status, e.detail, e.summary
    FROM unnest(
        $1::uuid[], $2::smallint[], $3::bigint[], $4::text[], $5::bigint[], $6::integer[],
        $7::smallint[], $8::text[], $9::text[], $10::boolean[], $11::text[]
    ) AS e (receipt, route, lease, next, pause, took, status, detail, summary, guarded, lane)
    CROSS JOIN LATERAL (
        SELECT d.ctid AS tid
        FROM oncebox.deliveries AS d
        WHERE d.receipt = e.receipt
          AND d.route = e.route
          AND d.epoch = e.lease
          AND d.lease_until > statement_timestamp()
          AND d.lane IS NOT DISTINCT FROM e.lane
          AND (e.guarded OR d.operation IS NULL)
        FOR UPDATE SKIP LOCKED
    ) AS d
),
gone AS (
    DELETE FROM oncebox.deliveries AS d
    USING mine AS m
    WHERE d.ctid = m.tid AND m.next IN ('processed', 'stale')
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
            WHEN m.next = 'damaged' THEN 'held'
            WHEN m.next = 'returned' AND d.attempts <= 1 THEN 'received'
            ELSE 'retrying'
        END,
        reason = CASE m.next WHEN 'damaged' THEN 'damaged' END,
        attempts = d.attempts - (m.next IN ('returned', 'damaged'))::integer,
        failures = d.failures + (m.next IN ('retry', 'dead'))::integer,
        snoozes = d.snoozes + (m.next = 'snooze')::integer,
        due_at = statement_timestamp() + m.pause * interval '1 millisecond',
        lease_until = NULL,
        worker = NULL,
        tried_ms = d.tried_ms + CASE m.next WHEN 'retry' THEN m.took + m.pause ELSE 0 END,
        failed_at = CASE WHEN m.next IN ('retry', 'dead') THEN statement_timestamp()
            ELSE d.failed_at END,
        retrying_since = CASE WHEN m.next = 'retry'
            THEN coalesce(d.retrying_since, statement_timestamp()) ELSE d.retrying_since END,
        -- What was returned was not tried: it is as suspect as it was.
        lost = CASE m.next WHEN 'returned' THEN d.lost ELSE 0 END,
        detail = CASE m.next WHEN 'returned' THEN d.detail ELSE m.detail END
    FROM mine AS m
    WHERE d.ctid = m.tid AND m.next NOT IN ('processed', 'stale')
    RETURNING d.*, m.next, m.took, m.status
),
tried AS (
    INSERT INTO oncebox.attempts (
        receipt, route, epoch, number, replays, ended_at, took_ms, outcome, status, detail
    )
    SELECT
        receipt, route, epoch, attempts, replays, statement_timestamp(), took, next, status, detail
    FROM back
    WHERE next NOT IN ('returned', 'damaged')
)
SELECT receipt, route, epoch FROM gone
UNION ALL
SELECT receipt, route, epoch FROM back;
