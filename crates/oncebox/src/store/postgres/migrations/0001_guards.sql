-- What claims and endings through SQL do about deliveries that share something with others. None
-- of this is for callers.
--
-- The rules are those of the store's own statements and of `delivery::judge`; they are told again
-- because a caller of SQL has nothing but SQL. A test drives both and compares what comes of it.
-- Here as there, whoever needs several locks takes lanes, operations, deliveries, each sorted.

-- Locks the lanes, then the operations of deliveries, as lock_lanes.sql and lock_operations.sql
-- do.
CREATE FUNCTION oncebox.lock_guards(
    shared oncebox.deliveries[], with_lanes boolean, with_operations boolean
)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    today CONSTANT integer := oncebox.today();
BEGIN
    IF with_lanes THEN
        INSERT INTO oncebox.lanes AS l (route, source, object, touched)
        SELECT s.route, s.source, s.lane, today
        FROM (
            SELECT DISTINCT s.route, s.source, s.lane
            FROM unnest(shared) AS s
            WHERE s.lane IS NOT NULL
        ) AS s
        ORDER BY s.route, s.source, s.lane COLLATE "C"
        ON CONFLICT (route, source, object) DO UPDATE SET touched = excluded.touched
        WHERE l.touched <> excluded.touched;
    END IF;
    IF with_operations THEN
        INSERT INTO oncebox.operations AS o (route, key, touched)
        SELECT s.route, s.operation, today
        FROM (
            SELECT DISTINCT s.route, s.operation
            FROM unnest(shared) AS s
            WHERE s.operation IS NOT NULL
        ) AS s
        ORDER BY s.route, s.operation
        ON CONFLICT (route, key) DO UPDATE SET touched = excluded.touched
        WHERE o.touched <> excluded.touched;
    END IF;
END
$$;

-- As release_lane_head.sql: lets go the next delivery of each lane, unless one is under a lease.
-- The two arrays belong together. Lanes are locked before.
CREATE FUNCTION oncebox.release_lanes(of_route smallint, of_sources smallint[], of_lanes text[])
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    at CONSTANT timestamptz := clock_timestamp();
BEGIN
    WITH next AS MATERIALIZED (
        SELECT
            CASE
                WHEN t.ordered THEN coalesce(
                    (
                        SELECT CASE WHEN d.reason = 'order' THEN d.ctid END
                        FROM oncebox.deliveries AS d
                        WHERE d.route = t.no AND d.source = l.source AND d.lane = l.lane
                          AND (d.state <> 'dead' OR t.on_dead <> 'continue')
                          AND (
                              d.state <> 'retrying' OR t.on_dead <> 'continue'
                              OR (
                                  d.retrying_since <= at - t.hold_for_ms * interval '1 millisecond'
                              ) IS NOT TRUE
                          )
                          AND d.reason IS DISTINCT FROM 'same-operation'
                        ORDER BY d.place, d.receipt
                        LIMIT 1
                    ),
                    (
                        SELECT d.ctid
                        FROM oncebox.deliveries AS d
                        WHERE d.route = t.no AND d.source = l.source AND d.lane = l.lane
                          AND d.reason = 'order' AND d.ignores_order
                        ORDER BY d.place, d.receipt
                        LIMIT 1
                    )
                )
                ELSE (
                    SELECT d.ctid
                    FROM oncebox.deliveries AS d
                    WHERE d.route = t.no AND d.source = l.source AND d.lane = l.lane
                      AND d.reason = 'order'
                    ORDER BY d.place, d.receipt
                    LIMIT 1
                )
            END AS tid
        FROM oncebox.routes AS t
        CROSS JOIN unnest(of_sources, of_lanes) AS l (source, lane)
        WHERE t.no = of_route
          AND NOT EXISTS (
              SELECT 1 FROM oncebox.deliveries AS d
              WHERE d.route = t.no AND d.source = l.source AND d.lane = l.lane COLLATE "C"
                AND d.state = 'processing'
              OFFSET 0
          )
    )
    UPDATE oncebox.deliveries AS d
    SET state = 'received', reason = NULL, due_at = at
    FROM next AS n
    WHERE d.ctid = n.tid AND d.reason = 'order';
END
$$;

-- As release_operation.sql: lets go what waited for deliveries of the same operation. Those that
-- are gone for good were in the way of all, and so were dead ones where the route goes on; others
-- were in the way of those before them. Operations are locked before.
CREATE FUNCTION oncebox.release_operations(
    of_route smallint, of_receipts uuid[], of_operations uuid[], gone boolean, dead boolean
)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    at CONSTANT timestamptz := clock_timestamp();
BEGIN
    UPDATE oncebox.deliveries AS d
    SET state = 'received', reason = NULL, due_at = at
    FROM oncebox.routes AS t
    CROSS JOIN unnest(of_receipts, of_operations) AS o (receipt, operation)
    CROSS JOIN LATERAL (
        SELECT w.ctid AS tid
        FROM oncebox.deliveries AS w
        WHERE w.route = t.no
          AND w.operation = o.operation
          AND w.reason = 'same-operation'
          AND (gone OR dead AND t.on_dead = 'continue' OR w.receipt < o.receipt)
        OFFSET 0
    ) AS w
    WHERE t.no = of_route AND d.ctid = w.tid AND d.reason = 'same-operation';
END
$$;

-- As find_facts.sql: what is in the way of deliveries that are locked, and so is what they share
-- with others, in the order of their lanes.
CREATE FUNCTION oncebox.find_facts(
    rules oncebox.routes,
    candidates uuid[],
    OUT receipt uuid,
    OUT source smallint,
    OUT lane text,
    OUT operation uuid,
    OUT created_at timestamptz,
    OUT ignores_stale boolean,
    OUT ignores_order boolean,
    OUT version bigint,
    OUT applied bigint,
    OUT in_flight boolean,
    OUT earlier_open boolean,
    OUT earlier_dead boolean,
    OUT same_processed uuid,
    OUT same_open boolean,
    OUT same_dead boolean
)
RETURNS SETOF record
LANGUAGE plpgsql
AS $$
DECLARE
    laned CONSTANT boolean := rules.ordered OR rules.skip_stale;
    reach CONSTANT interval := rules.same_operation_ms * interval '1 millisecond';
    -- What has kept failing since then is not in the way of its object.
    passed CONSTANT timestamptz := CASE rules.on_dead WHEN 'continue'
        THEN clock_timestamp() - rules.hold_for_ms * interval '1 millisecond' END;
    -- The days within reach of all of them. Clocks differ: one more to both sides costs nothing.
    days CONSTANT integer := 2 + coalesce(rules.same_operation_ms / 86400000, 0);
    from_id CONSTANT uuid := (
        SELECT oncebox.first_of_day(greatest(oncebox.day_of(m.receipt) - days, 0))
        FROM unnest(candidates) AS m (receipt)
        ORDER BY m.receipt
        LIMIT 1
    );
    to_id CONSTANT uuid := (
        SELECT oncebox.first_of_day(oncebox.day_of(m.receipt) + days)
        FROM unnest(candidates) AS m (receipt)
        ORDER BY m.receipt DESC
        LIMIT 1
    );
BEGIN
    RETURN QUERY
    SELECT
        c.receipt, c.source, c.lane, c.operation, c.created_at, c.ignores_stale,
        c.ignores_order,
        -- The lowest place is that of events without a version.
        nullif(c.place, -9223372036854775808) AS version,
        (
            SELECT l.applied
            FROM oncebox.lanes AS l
            WHERE l.route = rules.no AND l.source = c.source AND l.object = c.lane
        ) AS applied,
        EXISTS (
            SELECT 1 FROM oncebox.deliveries AS d
            WHERE d.route = rules.no AND d.source = c.source AND d.lane = c.lane COLLATE "C"
              AND d.state = 'processing'
            OFFSET 0
        ) AS in_flight,
        earlier.is_open AS earlier_open,
        NOT earlier.is_open AND EXISTS (
            SELECT 1 FROM oncebox.deliveries AS d
            WHERE d.route = rules.no AND d.source = c.source AND d.lane = c.lane
              AND (d.place, d.receipt) < (c.place, c.receipt)
              AND d.state NOT IN ('received', 'processing', 'retrying', 'held')
        ) AS earlier_dead,
        coalesce(
            (
                SELECT o.receipt
                FROM oncebox.operations AS o
                WHERE o.route = rules.no AND o.key = c.operation
                  AND o.received_at BETWEEN c.created_at - reach AND c.created_at + reach
            ),
            (
                SELECT f.receipt
                FROM oncebox.finished AS f
                WHERE f.route = rules.no AND f.operation = c.operation
                  AND f.state = 'processed'
                  AND f.created_at BETWEEN c.created_at - reach AND c.created_at + reach
                  AND f.receipt BETWEEN from_id AND to_id
                ORDER BY f.created_at
                LIMIT 1
            )
        ) AS same_processed,
        same.is_open AS same_open,
        NOT same.is_open AND EXISTS (
            SELECT 1 FROM oncebox.deliveries AS d
            WHERE d.route = rules.no AND d.operation = c.operation AND d.receipt < c.receipt
              AND d.state NOT IN ('received', 'processing', 'retrying', 'held')
              AND d.created_at BETWEEN c.created_at - reach AND c.created_at + reach
        ) AS same_dead
    FROM (
        -- Without what the route does not guard, or not any more.
        SELECT
            d.receipt, d.source, d.place, d.created_at, d.ignores_stale, d.ignores_order,
            CASE WHEN laned THEN d.lane END AS lane,
            CASE WHEN reach IS NOT NULL THEN d.operation END AS operation
        FROM unnest(candidates) AS m (receipt)
        CROSS JOIN LATERAL (
            SELECT d.*
            FROM oncebox.deliveries AS d
            WHERE d.receipt = m.receipt AND d.route = rules.no
            OFFSET 0
        ) AS d
    ) AS c
    CROSS JOIN LATERAL (
        SELECT EXISTS (
            SELECT 1 FROM oncebox.deliveries AS d
            WHERE d.route = rules.no AND d.source = c.source AND d.lane = c.lane
              AND (d.place, d.receipt) < (c.place, c.receipt)
              AND d.state <> 'dead'
              AND d.reason IS DISTINCT FROM 'same-operation'
              AND (d.retrying_since <= passed) IS NOT TRUE
        ) AS is_open
        OFFSET 0
    ) AS earlier
    CROSS JOIN LATERAL (
        SELECT EXISTS (
            SELECT 1 FROM oncebox.deliveries AS d
            WHERE d.route = rules.no AND d.operation = c.operation
              AND d.receipt <> c.receipt
              AND (d.receipt < c.receipt OR d.state = 'processing')
              AND d.state <> 'dead'
              AND d.created_at BETWEEN c.created_at - reach AND c.created_at + reach
        ) AS is_open
        OFFSET 0
    ) AS same
    ORDER BY
        c.lane IS NOT NULL, CASE WHEN c.lane IS NOT NULL THEN c.source END,
        c.lane COLLATE "C", c.place, c.receipt;
END
$$;

-- What was found of a candidate: `run`, the reason it is held for, or why it is skipped (`stale`,
-- or `repeated` and then the first of its operation).
CREATE TYPE oncebox.judged AS (
    receipt uuid,
    source smallint,
    lane text,
    operation uuid,
    verdict text,
    first uuid
);

-- As `delivery::judge`, of several in the order of their lanes: once one of a lane or an operation
-- runs, those after it wait.
CREATE FUNCTION oncebox.judge(rules oncebox.routes, candidates uuid[])
RETURNS SETOF oncebox.judged
LANGUAGE plpgsql
AS $$
DECLARE
    reach CONSTANT interval := rules.same_operation_ms * interval '1 millisecond';
    holds CONSTANT boolean := rules.on_dead = 'hold';
    facts record;
    found_of oncebox.judged;
    busy_source smallint;
    busy_lane text;
    ran_operations uuid[] := '{}';
    ran_times timestamptz[] := '{}';
BEGIN
    FOR facts IN SELECT f.* FROM oncebox.find_facts(rules, candidates) AS f LOOP
        IF facts.source = busy_source AND facts.lane = busy_lane THEN
            facts.in_flight := true;
        END IF;
        IF facts.operation = ANY (ran_operations) THEN
            facts.same_open := facts.same_open OR EXISTS (
                SELECT 1 FROM unnest(ran_operations, ran_times) AS o (operation, at)
                WHERE o.operation = facts.operation
                  AND o.at BETWEEN facts.created_at - reach AND facts.created_at + reach
            );
        END IF;
        found_of := ROW(facts.receipt, facts.source, facts.lane, facts.operation, NULL, NULL);
        found_of.verdict := CASE
            -- An equal version passes: providers send several events within the same second.
            WHEN NOT facts.ignores_stale AND rules.skip_stale
                AND facts.version < facts.applied THEN 'stale'
            -- A delivery that is replayed is not a repetition of itself.
            WHEN NOT facts.ignores_stale
                AND facts.same_processed <> facts.receipt THEN 'repeated'
            WHEN facts.lane IS NOT NULL AND (
                facts.in_flight
                OR rules.ordered AND NOT facts.ignores_order
                   AND (facts.earlier_open OR facts.earlier_dead AND holds)
            ) THEN 'order'
            WHEN NOT facts.ignores_stale AND NOT facts.ignores_order
                AND (facts.same_open OR facts.same_dead AND holds) THEN 'same-operation'
            ELSE 'run'
        END;
        IF found_of.verdict = 'run' THEN
            busy_source := facts.source;
            busy_lane := facts.lane;
            ran_operations := array_append(ran_operations, facts.operation);
            ran_times := array_append(ran_times, facts.created_at);
        ELSIF found_of.verdict = 'repeated' THEN
            found_of.first := facts.same_processed;
        END IF;
        RETURN NEXT found_of;
    END LOOP;
END
$$;

-- Does to candidates, which are locked, what was judged; returns those under leases. See
-- hold_deliveries.sql, skip_deliveries.sql and lease_deliveries.sql.
CREATE FUNCTION oncebox.apply_judged(
    of_route smallint, judged oncebox.judged[], lasting interval, who text,
    OUT leased oncebox.deliveries[]
)
LANGUAGE plpgsql
AS $$
DECLARE
    at CONSTANT timestamptz := clock_timestamp();
BEGIN
    UPDATE oncebox.deliveries AS d
    SET state = 'held', reason = j.verdict
    FROM unnest(judged) AS j
    CROSS JOIN LATERAL (
        SELECT o.ctid AS tid
        FROM oncebox.deliveries AS o
        WHERE o.receipt = j.receipt AND o.route = of_route
        OFFSET 0
    ) AS o
    WHERE j.verdict IN ('order', 'same-operation') AND d.ctid = o.tid;

    WITH gone AS (
        DELETE FROM oncebox.deliveries AS d
        USING unnest(judged) AS j
        CROSS JOIN LATERAL (
            SELECT o.ctid AS tid
            FROM oncebox.deliveries AS o
            WHERE o.receipt = j.receipt AND o.route = of_route
            OFFSET 0
        ) AS o
        WHERE j.verdict IN ('stale', 'repeated') AND d.ctid = o.tid
        RETURNING d.*, j.verdict, j.first
    )
    INSERT INTO oncebox.finished (
        receipt, route, source, state, reason, first, created_at, finished_at, epoch, attempts,
        failures, crashes, snoozes, replays, laned, operation, detail
    )
    SELECT
        g.receipt, g.route, g.source, 'skipped',
        CASE g.verdict WHEN 'stale' THEN 'stale' ELSE 'same-operation' END, g.first,
        g.created_at, at, g.epoch, g.attempts, g.failures, g.crashes, g.snoozes, g.replays,
        g.lane IS NOT NULL, g.operation, g.detail
    FROM gone AS g;

    WITH leased AS (
        UPDATE oncebox.deliveries AS d
        SET
            state = 'processing',
            attempts = d.attempts + 1,
            epoch = (((d.epoch >> 20) + 1) << 20) | floor(random() * 1048576)::bigint,
            lease_until = at + lasting,
            worker = who,
            claimed_in = pg_current_xact_id(),
            lost = CASE WHEN d.lost > 0 AND cardinality(judged) = 1 THEN 3 ELSE d.lost END
        FROM unnest(judged) AS j
        CROSS JOIN LATERAL (
            SELECT o.ctid AS tid
            FROM oncebox.deliveries AS o
            WHERE o.receipt = j.receipt AND o.route = of_route
            OFFSET 0
        ) AS o
        WHERE j.verdict = 'run' AND d.ctid = o.tid
        RETURNING d AS delivery
    )
    SELECT coalesce(array_agg(l.delivery), '{}') INTO leased FROM leased AS l;
END
$$;

-- As lock_guards(). False, and nothing is locked, if somebody holds any of it for longer.
CREATE FUNCTION oncebox.try_to_lock_guards(rules oncebox.routes, shared oncebox.deliveries[])
RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM oncebox.lock_guards(
        shared, rules.ordered OR rules.skip_stale, rules.same_operation_ms IS NOT NULL
    );
    RETURN true;
EXCEPTION
    WHEN lock_not_available THEN RETURN false;
END
$$;

-- Candidates of which nobody holds what they share with others, after that is locked. A worker may
-- take its time in a transaction that has locked a lane: who waits behind it is in nobody's way.
CREATE FUNCTION oncebox.lock_free_candidates(rules oncebox.routes, most integer)
RETURNS oncebox.deliveries[]
LANGUAGE plpgsql
SET lock_timeout = '10ms'
AS $$
DECLARE
    candidate oncebox.deliveries;
    free oncebox.deliveries[] := '{}';
    busy_lanes text[] := '{}';
BEGIN
    FOR candidate IN SELECT c.* FROM oncebox.find_candidates(rules.no, 256) AS c LOOP
        EXIT WHEN cardinality(free) >= most;
        CONTINUE WHEN candidate.lane = ANY (busy_lanes);
        IF oncebox.try_to_lock_guards(rules, ARRAY[candidate]) THEN
            free := array_append(free, candidate);
        ELSE
            busy_lanes := array_append(busy_lanes, candidate.lane);
        END IF;
    END LOOP;
    RETURN free;
END
$$;

-- Looks once at what is due of a route with guards: leases what may run, moves the rest out of the
-- way and lets go what waited for that. Tells what was leased, and how many were moved.
CREATE FUNCTION oncebox.claim_judged(
    rules oncebox.routes, most integer, lasting interval, who text,
    OUT leased oncebox.deliveries[], OUT moved integer
)
LANGUAGE plpgsql
AS $$
DECLARE
    candidates oncebox.deliveries[];
    mine uuid[];
    judged oncebox.judged[];
BEGIN
    leased := '{}';
    moved := 0;
    SELECT array_agg(c) INTO candidates FROM oncebox.find_candidates(rules.no, most) AS c;
    IF candidates IS NULL THEN
        RETURN;
    END IF;
    IF NOT oncebox.try_to_lock_guards(rules, candidates) THEN
        candidates := oncebox.lock_free_candidates(rules, most);
    END IF;
    -- Those that somebody has changed since they were looked for, or holds right now, are left
    -- out: they are looked at again.
    SELECT array_agg(d.receipt) INTO mine
    FROM unnest(candidates) AS c
    CROSS JOIN LATERAL (
        SELECT d.receipt
        FROM oncebox.deliveries AS d
        WHERE d.receipt = c.receipt
          AND d.route = c.route
          AND d.epoch = c.epoch
          AND d.state IN ('received', 'retrying')
          AND d.lane IS NOT DISTINCT FROM c.lane
        FOR UPDATE SKIP LOCKED
    ) AS d;
    -- In a snapshot that has what the last holder of those locks did.
    SELECT array_agg(j) INTO judged FROM oncebox.judge(rules, mine) AS j;
    leased := oncebox.apply_judged(rules.no, judged, lasting, who);
    PERFORM oncebox.release_lanes(rules.no, array_agg(j.source), array_agg(j.lane))
    FROM unnest(judged) AS j
    WHERE j.verdict IN ('stale', 'repeated', 'same-operation') AND j.lane IS NOT NULL
    HAVING count(*) > 0;
    PERFORM oncebox.release_operations(
        rules.no, array_agg(j.receipt), array_agg(j.operation), true, false
    )
    FROM unnest(judged) AS j
    WHERE j.verdict IN ('stale', 'repeated') AND j.operation IS NOT NULL
    HAVING count(*) > 0;
    moved := (SELECT count(*) FROM unnest(judged) AS j WHERE j.verdict <> 'run');
END
$$;

-- Looks again, for what is behind those that were moved. This transaction has locks by now, out of
-- the order in which others take them: it waits for nobody, and does without.
CREATE FUNCTION oncebox.claim_judged_again(
    rules oncebox.routes, most integer, lasting interval, who text,
    OUT leased oncebox.deliveries[], OUT moved integer
)
LANGUAGE plpgsql
SET lock_timeout = '10ms'
AS $$
BEGIN
    SELECT c.leased, c.moved INTO leased, moved
    FROM oncebox.claim_judged(rules, most, lasting, who) AS c;
EXCEPTION
    WHEN lock_not_available THEN
        leased := '{}';
        moved := 0;
END
$$;
