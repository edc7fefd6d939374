-- Takes deliveries away from workers that let their leases run out. A row that somebody holds is
-- being ended, extended or rescued right now.
WITH lost AS MATERIALIZED (
    SELECT d.receipt, d.route, t.max_attempts
    FROM unnest($1::uuid[], $2::smallint[], $3::bigint[]) AS e (receipt, route, epoch)
    JOIN oncebox.deliveries AS d
        ON d.receipt = e.receipt AND d.route = e.route AND d.epoch = e.epoch
    JOIN oncebox.routes AS t ON t.no = d.route
    WHERE d.state = 'processing' AND d.lease_until <= statement_timestamp()
    ORDER BY d.receipt, d.route
    FOR UPDATE OF d SKIP LOCKED
),
rescued AS (
    UPDATE oncebox.deliveries AS d
    SET
        state = CASE
            WHEN d.attempts - d.snoozes >= l.max_attempts THEN 'dead' ELSE 'retrying'
        END,
        crashes = d.crashes + 1,
        lost = true,
        due_at = statement_timestamp(),
        lease_until = NULL,
        worker = NULL,
        detail = CASE
            WHEN d.attempts - d.snoozes >= l.max_attempts
                THEN 'the lease ran out, and the attempts are spent'
            ELSE 'the lease ran out'
        END
    FROM lost AS l
    WHERE d.receipt = l.receipt AND d.route = l.route
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
