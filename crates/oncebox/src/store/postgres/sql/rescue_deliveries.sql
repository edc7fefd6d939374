-- Takes deliveries away from workers that let their leases run out. A row that somebody holds is
-- being ended, extended or rescued right now. What was lost together with other suspects is charged
-- nothing, as `Suspicion::after_loss` says.
WITH lost AS MATERIALIZED (
    SELECT d.tid, t.max_attempts
    FROM unnest($1::uuid[], $2::smallint[], $3::bigint[]) AS e (receipt, route, epoch)
    JOIN oncebox.routes AS t ON t.no = e.route
    CROSS JOIN LATERAL (
        SELECT d.ctid AS tid
        FROM oncebox.deliveries AS d
        WHERE d.receipt = e.receipt
          AND d.route = e.route
          AND d.epoch = e.epoch
          AND d.lease_until <= statement_timestamp()
        FOR UPDATE SKIP LOCKED
    ) AS d
),
judged AS MATERIALIZED (
    SELECT
        l.tid, d.attempts AS number,
        d.attempts - (d.lost IN (1, 2))::integer AS attempts,
        d.attempts - (d.lost IN (1, 2))::integer - d.snoozes >= l.max_attempts AS is_spent
    FROM lost AS l
    CROSS JOIN LATERAL (
        SELECT d.* FROM oncebox.deliveries AS d WHERE d.ctid = l.tid OFFSET 0
    ) AS d
),
rescued AS (
    UPDATE oncebox.deliveries AS d
    SET
        state = CASE WHEN j.is_spent THEN 'dead' ELSE 'retrying' END,
        attempts = j.attempts,
        crashes = d.crashes + 1,
        lost = CASE WHEN j.is_spent THEN 0 ELSE least(d.lost + 1, 3) END,
        failed_at = statement_timestamp(),
        retrying_since = coalesce(d.retrying_since, statement_timestamp()),
        due_at = statement_timestamp(),
        lease_until = NULL,
        worker = NULL,
        detail = CASE
            WHEN j.is_spent THEN 'the lease ran out, and the attempts are spent'
            ELSE 'the lease ran out'
        END
    FROM judged AS j
    WHERE d.ctid = j.tid
    RETURNING d.*, j.number
),
tried AS (
    INSERT INTO oncebox.attempts (
        receipt, route, epoch, number, replays, ended_at, outcome, detail
    )
    SELECT
        receipt, route, epoch, number, replays, statement_timestamp(), 'lost',
        'the lease ran out'
    FROM rescued
)
SELECT receipt, route, state FROM rescued;
