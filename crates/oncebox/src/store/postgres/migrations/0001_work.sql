-- Endings through SQL; see docs/effects.md.
--
-- A worker ends a delivery in the transaction that has its effects, so that all of it is committed
-- or nothing is. Nobody is notified: inside a transaction that makes commits wait for each other.
-- What becomes due by an ending here is found by the poll of the workers.

-- A note as it is kept: no longer than limits::DETAIL_BYTES, and cut between characters.
CREATE FUNCTION oncebox.short(note text)
RETURNS text
LANGUAGE plpgsql
STABLE
AS $$
DECLARE
    bytes CONSTANT bytea := convert_to(note, 'UTF8');
    most integer := 1024;
BEGIN
    IF note IS NULL OR octet_length(bytes) <= most THEN
        RETURN note;
    END IF;
    WHILE get_byte(bytes, most) & 192 = 128 LOOP
        most := most - 1;
    END LOOP;
    RETURN convert_from(substr(bytes, 1, most), 'UTF8');
END
$$;

-- Locks a delivery under a lease, and before it what it shares with others. NULL if the lease is
-- not good any more; refuses what this transaction has claimed itself. The lane is looked at again
-- once all is locked: the route may have come to guard it.
CREATE FUNCTION oncebox.lock_leased(of_receipt uuid, of_route smallint, of_lease bigint)
RETURNS oncebox.deliveries
LANGUAGE plpgsql
AS $$
DECLARE
    seen oncebox.deliveries;
    mine oncebox.deliveries;
BEGIN
    -- Most share nothing.
    SELECT d.* INTO mine
    FROM oncebox.deliveries AS d
    WHERE d.receipt = of_receipt AND d.route = of_route AND d.epoch = of_lease
      AND d.lane IS NULL AND d.operation IS NULL
    FOR UPDATE;
    WHILE NOT FOUND LOOP
        SELECT d.* INTO seen
        FROM oncebox.deliveries AS d
        WHERE d.receipt = of_receipt AND d.route = of_route AND d.epoch = of_lease;
        IF (seen.lease_until > clock_timestamp()) IS NOT TRUE THEN
            RETURN NULL;
        END IF;
        PERFORM oncebox.lock_guards(
            ARRAY[seen], seen.lane IS NOT NULL, seen.operation IS NOT NULL
        );
        SELECT d.* INTO mine
        FROM oncebox.deliveries AS d
        WHERE d.receipt = of_receipt AND d.route = of_route AND d.epoch = of_lease
          AND d.lane IS NOT DISTINCT FROM seen.lane
        FOR UPDATE;
    END LOOP;
    IF mine.claimed_in = pg_current_xact_id_if_assigned() THEN
        PERFORM oncebox.check_work(of_receipt, of_route, of_lease);
    END IF;
    IF mine.lease_until > clock_timestamp() THEN
        RETURN mine;
    END IF;
    RETURN NULL;
END
$$;

-- As `delivery::next`: where a delivery goes after an attempt, and the pause until it is due.
CREATE FUNCTION oncebox.next_of(
    mine oncebox.deliveries, outcome text, after interval, took integer,
    OUT next text, OUT pause interval
)
LANGUAGE plpgsql
AS $$
DECLARE
    spent CONSTANT integer := greatest(mine.attempts - mine.snoozes, 0);
    tried CONSTANT bigint := mine.tried_ms + took;
    rules oncebox.routes;
    asked numeric;
    longest double precision;
BEGIN
    next := outcome;
    pause := '0';
    IF outcome NOT IN ('retry', 'snooze') THEN
        RETURN;
    END IF;
    SELECT r.* INTO rules FROM oncebox.routes AS r WHERE r.no = mine.route;
    IF outcome = 'snooze' AND mine.snoozes >= rules.max_snoozes
        OR outcome = 'retry' AND spent >= rules.max_attempts
        OR outcome = 'retry' AND spent >= 5 AND tried >= rules.budget_ms
    THEN
        next := 'dead';
        RETURN;
    END IF;
    -- A consumer that names a time knows more than we do; it cannot park an event for ever.
    asked := least(extract(epoch FROM coalesce(after, '0')) * 1000, rules.longest_wait_ms);
    IF outcome = 'retry' THEN
        -- Half of the pause is left to chance, so that what failed together does not come back
        -- together. The last attempt within the budget is made when the budget ends.
        longest := least(rules.base_ms * power(4, least(greatest(spent - 1, 0), 15)), rules.cap_ms);
        longest := longest * (0.5 + random() / 2);
        IF spent >= 4 AND tried < rules.budget_ms THEN
            longest := least(longest, rules.budget_ms - tried);
        END IF;
        asked := greatest(longest::numeric, asked);
    END IF;
    pause := floor(asked) * interval '1 millisecond';
END
$$;

-- As finish.sql, for one delivery that lock_leased() has locked, and for what it shares with
-- others. Returns the state it is in then.
CREATE FUNCTION oncebox.end_attempt(
    mine oncebox.deliveries, outcome text, note text, after interval
)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    at CONSTANT timestamptz := clock_timestamp();
    -- The work is done in the transaction that ends it.
    took CONSTANT integer := least(
        greatest(extract(epoch FROM at - transaction_timestamp()) * 1000, 0), 2147483647
    );
    why CONSTANT text := CASE WHEN outcome <> 'processed' THEN oncebox.short(note) END;
    way CONSTANT record := oncebox.next_of(mine, outcome, after, took);
BEGIN
    IF way.next IN ('processed', 'stale') THEN
        DELETE FROM oncebox.deliveries AS d
        WHERE d.receipt = mine.receipt AND d.route = mine.route;
        INSERT INTO oncebox.finished (
            receipt, route, source, state, reason, created_at, finished_at, epoch, attempts,
            failures, crashes, snoozes, replays, laned, operation, took_ms, detail, summary
        )
        VALUES (
            mine.receipt, mine.route, mine.source,
            CASE way.next WHEN 'stale' THEN 'skipped' ELSE 'processed' END,
            CASE way.next WHEN 'stale' THEN 'stale' END,
            mine.created_at, at, mine.epoch, mine.attempts, mine.failures, mine.crashes,
            mine.snoozes, mine.replays, mine.lane IS NOT NULL, mine.operation, took, why,
            CASE way.next WHEN 'processed' THEN oncebox.short(note) END
        );
    ELSE
        UPDATE oncebox.deliveries AS d
        SET
            state = CASE way.next WHEN 'dead' THEN 'dead' ELSE 'retrying' END,
            failures = d.failures + (way.next IN ('retry', 'dead'))::integer,
            snoozes = d.snoozes + (way.next = 'snooze')::integer,
            due_at = at + way.pause,
            lease_until = NULL,
            worker = NULL,
            claimed_in = NULL,
            tried_ms = d.tried_ms + CASE way.next
                WHEN 'retry' THEN took + (extract(epoch FROM way.pause) * 1000)::bigint ELSE 0 END,
            failed_at = CASE WHEN way.next IN ('retry', 'dead') THEN at ELSE d.failed_at END,
            retrying_since = CASE WHEN way.next = 'retry'
                THEN coalesce(d.retrying_since, at) ELSE d.retrying_since END,
            lost = 0,
            detail = why
        WHERE d.receipt = mine.receipt AND d.route = mine.route;
        INSERT INTO oncebox.attempts (
            receipt, route, epoch, number, replays, ended_at, took_ms, outcome, detail
        )
        VALUES (
            mine.receipt, mine.route, mine.epoch, mine.attempts, mine.replays, at, took,
            way.next, why
        );
    END IF;
    IF mine.lane IS NOT NULL OR mine.operation IS NOT NULL THEN
        PERFORM oncebox.leave_guards(mine, way.next);
    END IF;
    RETURN oncebox.state_after(way.next);
END
$$;

-- What the end of an attempt means to others of its object and operation: the watermark moves, the
-- operation is remembered, and what waited is let go. See move_watermark.sql and
-- remember_operation.sql. Both are locked before. What was held after the snapshot of a transaction
-- that has only one is let go by the net for such things, `Queue::release_unblocked`.
CREATE FUNCTION oncebox.leave_guards(mine oncebox.deliveries, next text)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF next = 'processed' THEN
        UPDATE oncebox.lanes AS l
        SET applied = mine.place
        WHERE l.route = mine.route AND l.source = mine.source AND l.object = mine.lane
          -- The lowest place is that of events without a version.
          AND mine.place > -9223372036854775808
          AND (l.applied IS NULL OR l.applied < mine.place);
        UPDATE oncebox.operations AS o
        SET receipt = mine.receipt, received_at = mine.created_at
        WHERE o.route = mine.route AND o.key = mine.operation
          AND (o.received_at IS NULL OR o.received_at <= mine.created_at);
    END IF;
    IF mine.lane IS NOT NULL THEN
        PERFORM oncebox.release_lanes(mine.route, ARRAY[mine.source], ARRAY[mine.lane]);
    END IF;
    IF mine.operation IS NOT NULL THEN
        PERFORM oncebox.release_operations(
            mine.route, ARRAY[mine.receipt], ARRAY[mine.operation],
            next IN ('processed', 'stale'), next = 'dead'
        );
    END IF;
END
$$;

-- The state of a delivery whose attempt ended so.
CREATE FUNCTION oncebox.state_after(next text)
RETURNS text
LANGUAGE sql
IMMUTABLE
AS $$
    SELECT CASE next
        WHEN 'processed' THEN 'processed'
        WHEN 'stale' THEN 'skipped'
        WHEN 'dead' THEN 'dead'
        ELSE 'retrying'
    END
$$;

-- As find_ended.sql: how an attempt ended before, if it did.
CREATE FUNCTION oncebox.ended_before(of_receipt uuid, of_route smallint, of_lease bigint)
RETURNS text
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN coalesce(
        (
            SELECT coalesce(f.reason, f.state)
            FROM oncebox.finished AS f
            WHERE f.receipt = of_receipt AND f.route = of_route AND f.epoch = of_lease
              AND f.took_ms IS NOT NULL
        ),
        (
            SELECT a.outcome
            FROM oncebox.attempts AS a
            WHERE a.receipt = of_receipt AND a.route = of_route AND a.epoch = of_lease
        )
    );
END
$$;

-- Ends an attempt under its lease, in the transaction that has its effects: `processed`, `stale`,
-- `retry` (no sooner than `after`), `snooze` (until `after`) or `dead`. The note says what was
-- done, or why it was not. Returns the state of the delivery then. If the lease is lost, this is an
-- error, so that nothing is committed.
--
-- An attempt that is ended again in the same way, because nobody heard of the commit, is told its
-- state: but only where nothing else was written and nothing can be after, and so not in a
-- savepoint. A transaction that does its work a second time is refused.
CREATE FUNCTION oncebox.finish(
    delivery text,
    lease bigint,
    outcome text DEFAULT 'processed',
    note text DEFAULT NULL,
    after interval DEFAULT NULL
)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = oncebox, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
DECLARE
    -- Asked before anything is locked: that counts as well.
    wrote CONSTANT boolean := pg_current_xact_id_if_assigned() IS NOT NULL;
    named record;
    mine oncebox.deliveries;
    before text;
BEGIN
    IF (outcome IN ('processed', 'stale', 'retry', 'snooze', 'dead')) IS NOT TRUE THEN
        PERFORM oncebox.refuse(
            'OB400',
            format('%L is no outcome', left(outcome, 100)),
            'Say processed, stale, retry, snooze or dead.'
        );
    END IF;
    IF (after >= interval '0') IS FALSE
        OR outcome = 'snooze' AND after IS NULL
        OR outcome NOT IN ('retry', 'snooze') AND after IS NOT NULL
    THEN
        PERFORM oncebox.refuse(
            'OB400',
            format('"after" is %s for the outcome %s', coalesce(after::text, 'NULL'), outcome),
            'A snooze needs "after", a retry may have it, neither below zero; the other outcomes '
            'have none.'
        );
    END IF;
    IF lease IS NULL THEN
        PERFORM oncebox.refuse(
            'OB400', 'there is no lease', 'Give the lease that oncebox.claim() returned.'
        );
    END IF;
    named := oncebox.read_delivery(delivery COLLATE "default");
    IF current_setting('transaction_read_only') = 'off' THEN
        mine := oncebox.lock_leased(named.receipt, named.route, lease);
        IF mine.receipt IS NOT NULL THEN
            RETURN oncebox.end_attempt(mine, outcome, note, after);
        END IF;
    END IF;
    before := oncebox.ended_before(named.receipt, named.route, lease);
    IF (before = outcome OR before = 'dead' AND outcome IN ('retry', 'snooze')) IS NOT TRUE THEN
        PERFORM oncebox.check_work(named.receipt, named.route, lease);
        PERFORM oncebox.refuse(
            'OB412',
            'this transaction is read-only',
            'End an attempt in a transaction that may write.'
        );
    END IF;
    IF wrote THEN
        PERFORM oncebox.refuse(
            'OB409',
            format('this attempt of delivery %s has ended before', delivery),
            'Roll back: what it wrote was committed when it ended.'
        );
    END IF;
    -- Released, a savepoint would take the next line back. Only a transaction that is in none can
    -- export its snapshot; the others fail here.
    PERFORM pg_export_snapshot();
    PERFORM set_config('transaction_read_only', 'on', true);
    RETURN oncebox.state_after(before);
END
$$;

-- Gives a delivery back that its worker has not begun: as if it had not been claimed. Returns the
-- state it is in then. A begun effect is refused: without the lease its outcome is unknown.
CREATE FUNCTION oncebox.return(delivery text, lease bigint)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = oncebox, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    of_delivery ALIAS FOR $1;
    of_lease ALIAS FOR $2;
    named record := oncebox.read_delivery(of_delivery COLLATE "default");
    mine oncebox.deliveries;
    begun text;
    left_in text;
BEGIN
    IF of_lease IS NULL THEN
        PERFORM oncebox.refuse(
            'OB400', 'there is no lease', 'Give the lease that oncebox.claim() returned.'
        );
    END IF;
    mine := oncebox.lock_leased(named.receipt, named.route, of_lease);
    IF mine.receipt IS NULL THEN
        -- Said again: one that was returned leaves no trace but the epoch it had.
        SELECT d.state INTO left_in
        FROM oncebox.deliveries AS d
        WHERE d.receipt = named.receipt AND d.route = named.route AND d.epoch = of_lease
          AND d.state IN ('received', 'retrying', 'held')
          AND oncebox.ended_before(named.receipt, named.route, of_lease) IS NULL;
        IF FOUND THEN
            RETURN left_in;
        END IF;
        PERFORM oncebox.check_work(named.receipt, named.route, of_lease);
    END IF;
    SELECT e.key INTO begun
    FROM oncebox.effects AS e
    WHERE e.receipt = mine.receipt AND e.route = mine.route AND e.epoch = mine.epoch
      AND e.state = 'started'
    LIMIT 1;
    IF FOUND THEN
        PERFORM oncebox.refuse(
            'OB412',
            format('the effect %s was begun under this lease', begun),
            'Complete or abandon it first; only what was not begun is given back.'
        );
    END IF;
    UPDATE oncebox.deliveries AS d
    SET
        state = CASE WHEN d.attempts <= 1 THEN 'received' ELSE 'retrying' END,
        attempts = d.attempts - 1,
        due_at = clock_timestamp(),
        lease_until = NULL,
        worker = NULL,
        claimed_in = NULL
    WHERE d.receipt = mine.receipt AND d.route = mine.route
    RETURNING d.state INTO left_in;
    IF mine.lane IS NOT NULL OR mine.operation IS NOT NULL THEN
        PERFORM oncebox.leave_guards(mine, 'returned');
    END IF;
    RETURN left_in;
END
$$;

-- Makes a lease last until this long from now, and returns that time. Others see it when this is
-- committed, so it is best called in a transaction of its own.
CREATE FUNCTION oncebox.extend(
    delivery text,
    lease bigint,
    by interval DEFAULT '30 seconds',
    OUT lease_until timestamptz
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = oncebox, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    named record;
    until timestamptz;
BEGIN
    PERFORM oncebox.check_length(extend.by);
    IF extend.lease IS NULL THEN
        PERFORM oncebox.refuse(
            'OB400', 'there is no lease', 'Give the lease that oncebox.claim() returned.'
        );
    END IF;
    named := oncebox.read_delivery(extend.delivery COLLATE "default");
    PERFORM FROM oncebox.deliveries AS d
    WHERE d.receipt = named.receipt AND d.route = named.route AND d.epoch = extend.lease
    FOR UPDATE;
    -- The row is locked: what is good now stays so.
    PERFORM oncebox.check_work(named.receipt, named.route, extend.lease);
    until := clock_timestamp() + extend.by;
    UPDATE oncebox.deliveries AS d
    SET lease_until = until
    WHERE d.receipt = named.receipt AND d.route = named.route;
    lease_until := until;
END
$$;
