-- Takes deliveries away from workers that let their leases run out. A row that somebody holds is
-- being ended, extended or rescued right now.
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
rescued AS (
    UPDATE oncebox.deliveries AS d
    SET
        state = CASE
            WHEN d.attempts - d.snoozes >= l.max_attempts THEN 'dead' ELSE 'retrying'
        END,
        crashes = d.crashes + 1,
        lost = d.attempts - d.snoozes < l.max_attempts,
        due_at = statement_timestamp(),
        lease_until = NULL,
        worker = NULL,
        detail = CASE
            WHEN d.attempts - d.snoozes >= l.max_attempts
                THEN 'the lease ran out, and the attempts are spent'
            ELSE 'the lease ran out'
        END
    FROM lost AS l
    WHERE d.ctid = l.tid
    RETURNING d.*
),
tried AS (
    INSERT INTO oncebox.attempts (
        receipt, route, epoch, number, replays, ended_at, outcome, detail
    )
    SELECT
        receipt, route, epoch, attempts, replays, statement_timestamp(), 'lost',
        'the lease ran out'
    FROM rescued
)
SELECT receipt, route, state FROM rescued;
