-- The verbs, for every language that speaks SQL; see docs/effects.md.
--
-- Those that a role may be allowed to call check what they are given, and refuse with a code and a
-- hint. They run as the owner of the schema, with a search path that nobody else can put anything
-- into, and along indexes: a plan made while a table was empty must do when it holds a million.
-- The functions below them answer with a word where they can, so that the transaction goes on; the
-- Rust code of the store calls those. What is assigned rather than performed is evaluated without
-- a query of its own.
--
-- Whoever needs several locks takes them in this order: effects, groups of messages, lanes,
-- operations, deliveries.

-- A UUIDv7: the time in milliseconds, then chance.
CREATE FUNCTION oncebox.new_id() RETURNS uuid
LANGUAGE plpgsql
AS $$
DECLARE
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    bytes bytea := overlay(
        uuid_send(gen_random_uuid()) PLACING substring(int8send(ms) FROM 3) FROM 1 FOR 6
    );
BEGIN
    -- Version 4 becomes version 7.
    RETURN encode(set_bit(set_bit(bytes, 52, 1), 53, 1), 'hex')::uuid;
END
$$;

-- Today, as a day is kept.
CREATE FUNCTION oncebox.today() RETURNS integer
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN floor(extract(epoch FROM clock_timestamp()) / 86400)::integer;
END
$$;

CREATE FUNCTION oncebox.refuse(code text, message text, hint text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = refuse.code, MESSAGE = refuse.message, HINT = refuse.hint;
END
$$;

CREATE FUNCTION oncebox.refuse_open(key text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM oncebox.refuse(
        'OB425',
        format('the effect %s was begun elsewhere, and what came of it is not known yet', key),
        'Try again later. If it stays unknown, find out whether it happened and say so with '
        '"oncebox effects settle".'
    );
END
$$;

-- A delivery as it is written: its receipt, a dot, and the number of its route.
CREATE FUNCTION oncebox.read_delivery(delivery text, OUT receipt uuid, OUT route smallint)
LANGUAGE plpgsql
AS $$
DECLARE
    hint text := 'Give the delivery as oncebox.claim returned it: a receipt id, a dot, a number.';
BEGIN
    IF delivery IS NULL
        OR delivery !~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[0-9]{1,5}$'
        OR split_part(delivery, '.', 2)::integer > 32767
    THEN
        PERFORM oncebox.refuse('OB400', format('%L is no delivery', delivery), hint);
    END IF;
    receipt := split_part(delivery, '.', 1)::uuid;
    route := split_part(delivery, '.', 2)::smallint;
END
$$;

-- Refuses what cannot be a key, the name of a step, a group or an object; otherwise it is given
-- back.
CREATE FUNCTION oncebox.check_name(what text, value text) RETURNS text
LANGUAGE plpgsql
AS $$
BEGIN
    IF coalesce(value, '') = '' THEN
        PERFORM oncebox.refuse(
            'OB400',
            format('the %s is empty', what),
            CASE what
                WHEN 'object' THEN 'Name what the event is about, such as in_456.'
                WHEN 'group' THEN
                    'Name what stays in order, such as a customer; NULL is for none.'
                WHEN 'name of the step' THEN 'Name the stage, such as charge.'
                WHEN 'destination' THEN 'Name one that has [destinations.NAME].'
                ELSE 'Name what happens and to which thing, such as receipt-email:in_456.'
            END
        );
    END IF;
    IF octet_length(value) > 512 THEN
        PERFORM oncebox.refuse(
            'OB400',
            format('the %s is %s bytes long, and 512 are allowed', what, octet_length(value)),
            'Hash what is long.'
        );
    END IF;
    IF value ~ '[\u0001-\u001f\u007f-\u009f]' THEN
        PERFORM oncebox.refuse(
            'OB400',
            format('the %s has a control character', what),
            'Use plain text; encode what is binary.'
        );
    END IF;
    RETURN value;
END
$$;

-- Refuses a result that is too large; otherwise it is as it is kept.
CREATE FUNCTION oncebox.check_result(result jsonb) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    written text := result::text;
BEGIN
    IF octet_length(written) > 16384 THEN
        PERFORM oncebox.refuse(
            'OB400',
            format('the result is %s bytes long, and 16384 are allowed', octet_length(written)),
            'Keep it elsewhere and record where it is.'
        );
    END IF;
    RETURN written;
END
$$;

-- A result as it was kept. JSON allows texts that jsonb does not: those are given as a string.
CREATE FUNCTION oncebox.read_result(result text) RETURNS jsonb
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN result::jsonb;
EXCEPTION
    WHEN data_exception THEN RETURN to_jsonb(result);
END
$$;

-- What a lease stands for: an attempt, and the source of its event. Nothing if it is not good any
-- more. The delivery is not locked: its lease must be free to be extended meanwhile, and whoever
-- ends the attempt compares and sets.
CREATE FUNCTION oncebox.find_work(
    receipt uuid,
    route smallint,
    lease bigint,
    OUT attempt integer,
    OUT source smallint,
    OUT claimed_here boolean
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    SELECT d.attempts, d.source, coalesce(d.claimed_in = pg_current_xact_id_if_assigned(), false)
    INTO attempt, source, claimed_here
    FROM oncebox.deliveries AS d
    WHERE d.receipt = find_work.receipt
      AND d.route = find_work.route
      AND d.epoch = find_work.lease
      AND d.lease_until > clock_timestamp();
END
$$;

-- Says what became of a delivery whose lease is not good. Leases rise, so a higher one than the
-- last was never given.
CREATE FUNCTION oncebox.refuse_lost(delivery text, state text, epoch bigint, lease bigint)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF state IN ('processed', 'skipped', 'dead') THEN
        PERFORM oncebox.refuse(
            'OB409',
            format('delivery %s is %s already', delivery, state),
            'Roll back: nothing is done for a delivery that has ended. In a transaction, finish '
            'is the last verb.'
        );
    END IF;
    IF lease > epoch THEN
        PERFORM oncebox.refuse(
            'OB409',
            format('delivery %s has no lease %s', delivery, lease),
            'Roll back, and give the lease that oncebox.claim returned with the delivery.'
        );
    END IF;
    PERFORM oncebox.refuse(
        'OB409',
        format(
            'the lease of delivery %s is not good any more: %s',
            delivery,
            CASE
                WHEN state <> 'processing' THEN 'the delivery is ' || state
                WHEN lease = epoch THEN 'it ran out'
                ELSE 'there is another'
            END
        ),
        'Roll back: somebody else has it or will. Claim for longer, or extend in time with '
        'oncebox.extend on another connection. In a transaction, finish is the last verb.'
    );
END
$$;

-- As find_work(), and refuses where there is nothing to work on.
CREATE FUNCTION oncebox.check_work(
    receipt uuid,
    route smallint,
    lease bigint,
    OUT attempt integer,
    OUT source smallint
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    work record := oncebox.find_work(check_work.receipt, check_work.route, check_work.lease);
    delivery text := check_work.receipt || '.' || check_work.route;
    met record;
BEGIN
    IF work.claimed_here THEN
        PERFORM oncebox.refuse(
            'OB412',
            format('delivery %s was claimed in this same transaction', delivery),
            'Commit the claim first, and work in a transaction after it: a claim that is rolled '
            'back with the work would not count as an attempt.'
        );
    END IF;
    attempt := work.attempt;
    source := work.source;
    IF attempt IS NOT NULL THEN
        RETURN;
    END IF;
    SELECT d.state, d.epoch INTO met
    FROM oncebox.deliveries AS d
    WHERE d.receipt = check_work.receipt AND d.route = check_work.route;
    IF NOT FOUND THEN
        SELECT f.state, f.epoch INTO met
        FROM oncebox.finished AS f
        WHERE f.receipt = check_work.receipt AND f.route = check_work.route;
    END IF;
    IF NOT FOUND THEN
        PERFORM oncebox.refuse(
            'OB404',
            format('there is no delivery %s', delivery),
            'Give the delivery as oncebox.claim returned it.'
        );
    END IF;
    PERFORM oncebox.refuse_lost(delivery, met.state, met.epoch, check_work.lease);
END
$$;

-- The delivery that this transaction has entered, its lease checked again: a setting can be made
-- by anybody, a lease only by a claim.
CREATE FUNCTION oncebox.current_work(
    OUT receipt uuid,
    OUT route smallint,
    OUT lease bigint,
    OUT attempt integer,
    OUT source smallint
)
LANGUAGE plpgsql
AS $$
DECLARE
    entered text := current_setting('oncebox.delivery', true);
    named record;
    work record;
BEGIN
    IF coalesce(entered, '') = '' THEN
        PERFORM oncebox.refuse(
            'OB412',
            'this transaction has entered no delivery',
            'Call oncebox.enter(delivery, lease) before, in the same transaction.'
        );
    END IF;
    named := oncebox.read_delivery(entered);
    receipt := named.receipt;
    route := named.route;
    lease := nullif(current_setting('oncebox.lease', true), '')::bigint;
    work := oncebox.check_work(receipt, route, lease);
    attempt := work.attempt;
    source := work.source;
END
$$;

-- The key of a step of the delivery that was entered. The route goes in under the name it was born
-- with, so a rename does not run steps again.
CREATE FUNCTION oncebox.current_step(
    delivery text,
    name text,
    OUT key text,
    OUT receipt uuid,
    OUT route smallint,
    OUT lease bigint,
    OUT attempt integer
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    named record := oncebox.read_delivery(current_step.delivery);
    work record := oncebox.current_work();
BEGIN
    name := oncebox.check_name('name of the step', name);
    IF (named.receipt, named.route) IS DISTINCT FROM (work.receipt, work.route) THEN
        PERFORM oncebox.refuse(
            'OB412',
            format('this transaction has entered another delivery than %s', delivery),
            'Call oncebox.enter(delivery, lease) for it before its steps.'
        );
    END IF;
    receipt := work.receipt;
    route := work.route;
    lease := work.lease;
    attempt := work.attempt;
    SELECT work.receipt || '/' || t.born_as || '/' || current_step.name INTO key
    FROM oncebox.routes AS t
    WHERE t.no = work.route;
END
$$;

-- Effects as they are to be read. Whoever is at one under a lease that has ended leaves it unknown,
-- whether or not anybody has written that down. Leases are looked for one by one: few effects are
-- started, and deliveries may be many.
CREATE VIEW oncebox.known_effects AS
SELECT
    e.key, e.kind, e.state AS written, e.receipt, e.route, t.name AS route_name, e.attempt, e.at,
    e.result, e.evidence_at, e.evidence,
    CASE WHEN e.state = 'started' AND live.lease IS NULL THEN 'unknown' ELSE e.state END AS state,
    e.unknowns + (e.state = 'started' AND live.lease IS NULL)::integer AS unknowns,
    (SELECT count(*) FROM oncebox.effect_conflicts AS c WHERE c.key = e.key) AS conflicts
FROM oncebox.effects AS e
JOIN oncebox.routes AS t ON t.no = e.route
LEFT JOIN LATERAL (
    SELECT d.epoch AS lease
    FROM oncebox.deliveries AS d
    WHERE e.state = 'started'
      AND d.receipt = e.receipt
      AND d.route = e.route
      AND d.epoch = e.epoch
      AND d.lease_until > statement_timestamp()
    OFFSET 0
) AS live ON true;

-- Lets go the deliveries that are held for an effect: its outcome is known.
CREATE FUNCTION oncebox.release_parked(key text) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    released bigint;
BEGIN
    WITH parked AS MATERIALIZED (
        SELECT d.ctid AS tid
        FROM oncebox.deliveries AS d
        WHERE d.effect = release_parked.key AND d.reason = 'unknown-effect'
        ORDER BY d.receipt, d.route
        FOR UPDATE
    )
    UPDATE oncebox.deliveries AS d
    SET state = 'retrying', reason = NULL, effect = NULL, due_at = clock_timestamp()
    FROM parked AS p
    WHERE d.ctid = p.tid;
    GET DIAGNOSTICS released = ROW_COUNT;
    RETURN released;
END
$$;

-- Notes that a delivery found an effect done by another. What it found first stays.
CREATE FUNCTION oncebox.note_conflict(key text, receipt uuid, route smallint, differs boolean)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO oncebox.effect_conflicts (key, receipt, route, at, differs)
    VALUES (
        note_conflict.key, note_conflict.receipt, note_conflict.route, clock_timestamp(),
        note_conflict.differs
    )
    ON CONFLICT DO NOTHING;
END
$$;

-- Takes a key for a delivery whose lease was checked: `first`, `already` or `open`. Inserting it
-- waits for a transaction that has it and has not committed, so `already` is said of nothing that
-- may still be rolled back. With one snapshot for the whole transaction, what that does not show is
-- an error. Between the two looks the row may be gone: then it is inserted after all. One that was
-- found done is locked against that, for the conflict refers to it.
CREATE FUNCTION oncebox.take_effect(
    key text,
    kind text,
    receipt uuid,
    route smallint,
    lease bigint,
    attempt integer,
    result text
) RETURNS text
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    met record;
BEGIN
    LOOP
        INSERT INTO oncebox.effects (
            key, kind, state, receipt, route, epoch, attempt, at, result
        )
        VALUES (
            take_effect.key, take_effect.kind, 'done', take_effect.receipt, take_effect.route,
            take_effect.lease, take_effect.attempt, clock_timestamp(), take_effect.result
        )
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN 'first';
        END IF;
        SELECT e.state, e.receipt, e.route, e.epoch INTO met
        FROM oncebox.effects AS e
        WHERE e.key = take_effect.key
        FOR KEY SHARE;
        CONTINUE WHEN NOT FOUND;
        IF met.state = 'done' THEN
            IF (met.receipt, met.route) <> (take_effect.receipt, take_effect.route) THEN
                PERFORM oncebox.note_conflict(
                    take_effect.key, take_effect.receipt, take_effect.route, false
                );
            END IF;
            RETURN 'already';
        END IF;
        IF met.state <> 'started'
            OR (met.receipt, met.route, met.epoch)
                <> (take_effect.receipt, take_effect.route, take_effect.lease)
        THEN
            RETURN 'open';
        END IF;
        -- The same lease has begun it through another door, and does it here.
        UPDATE oncebox.effects AS e
        SET state = 'done', at = clock_timestamp(), result = take_effect.result
        WHERE e.key = take_effect.key
          AND e.state = 'started'
          AND e.receipt = take_effect.receipt
          AND e.route = take_effect.route
          AND e.epoch = take_effect.lease;
        CONTINUE WHEN NOT FOUND;
        PERFORM oncebox.release_parked(take_effect.key);
        RETURN 'first';
    END LOOP;
END
$$;

-- Writes an outbox message for a delivery whose lease was checked: an effect, a receipt and a
-- delivery, as if an event had come in. It is `new`, was written `before`, is in `conflict` with
-- what was written before, or goes `nowhere` for want of a destination. The number in the group
-- comes from a row that stays locked until the sender commits, so numbers are in the order of
-- commits.
CREATE FUNCTION oncebox.put_message(
    receipt uuid,
    route smallint,
    lease bigint,
    attempt integer,
    destination text,
    key text,
    payload bytea,
    "group" text,
    content_type text,
    OUT outcome text,
    OUT message uuid
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    channel text := 'outbox/' || put_message.destination;
    whole text;
    hash bytea := sha256(put_message.payload);
    short uuid := encode(substring(hash FROM 1 FOR 16), 'hex')::uuid;
    to_source smallint;
    to_route smallint;
    number bigint;
    written timestamptz;
    met record;
BEGIN
    -- The name it was born with: one that is renamed does not send again what it sent.
    SELECT s.no, t.no, t.born_as || '/' || put_message.key INTO to_source, to_route, whole
    FROM oncebox.sources AS s
    JOIN oncebox.routes AS t ON t.name = s.name
    WHERE s.name = channel;
    IF NOT FOUND THEN
        outcome := 'nowhere';
        RETURN;
    END IF;

    message := oncebox.new_id();
    LOOP
        INSERT INTO oncebox.effects (
            key, kind, state, receipt, route, epoch, attempt, at, digest, result
        )
        VALUES (
            whole, 'message', 'done', put_message.receipt, put_message.route, put_message.lease,
            put_message.attempt, clock_timestamp(), short, to_json(message)::text
        )
        ON CONFLICT DO NOTHING;
        EXIT WHEN FOUND;
        SELECT e.receipt, e.route, e.digest, e.result INTO met
        FROM oncebox.effects AS e
        WHERE e.key = whole
        FOR KEY SHARE;
        CONTINUE WHEN NOT FOUND;
        message := (met.result::jsonb #>> '{}')::uuid;
        outcome := CASE WHEN met.digest = short THEN 'before' ELSE 'conflict' END;
        IF (met.receipt, met.route) <> (put_message.receipt, put_message.route) THEN
            PERFORM oncebox.note_conflict(
                whole, put_message.receipt, put_message.route, outcome = 'conflict'
            );
        END IF;
        RETURN;
    END LOOP;

    IF put_message."group" IS NOT NULL THEN
        INSERT INTO oncebox.outbox_groups AS g (route, name, last, touched)
        VALUES (to_route, put_message."group", 1, oncebox.today())
        ON CONFLICT ON CONSTRAINT outbox_groups_pkey
            DO UPDATE SET last = g.last + 1, touched = excluded.touched
        RETURNING g.last INTO number;
    END IF;
    written := clock_timestamp();
    INSERT INTO oncebox.receipts (
        id, received_at, version, source, secret, routes, trust, event_id, event_type, object,
        digest, headers, body
    )
    VALUES (
        message, written, number, to_source, 0, 1, 'signed', put_message.key, 'message',
        put_message."group", hash,
        convert_to(
            format(
                E'content-type: %s\noncebox-cause: %s.%s\n',
                put_message.content_type, put_message.receipt, put_message.route
            ),
            'UTF8'
        ),
        put_message.payload
    );
    INSERT INTO oncebox.deliveries (
        receipt, route, source, state, created_at, due_at, lane, place
    )
    VALUES (
        message, to_route, to_source, 'received', written, written, put_message."group",
        coalesce(number, -9223372036854775808)
    );
    outcome := 'new';
END
$$;

-- Never back; an equal version passes.
CREATE FUNCTION oncebox.move_watermark(
    route smallint,
    source smallint,
    object text,
    version bigint
) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO oncebox.lanes AS l (route, source, object, applied, touched)
    VALUES (
        move_watermark.route, move_watermark.source, move_watermark.object,
        move_watermark.version, oncebox.today()
    )
    ON CONFLICT ON CONSTRAINT lanes_pkey
        DO UPDATE SET applied = excluded.applied, touched = excluded.touched
        WHERE l.applied IS NULL OR l.applied <= excluded.applied;
    RETURN FOUND;
END
$$;

-- From here on, what a role may be allowed to call. The text of a caller may have a collation of
-- its own, as a column has, and a function takes that on for all it compares. So what is handed on
-- from here says that it has none.

-- Has this transaction work on a delivery: the verbs after it are about that one, until another is
-- entered or the transaction ends.
CREATE FUNCTION oncebox.enter(delivery text, lease bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = oncebox, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    named record := oncebox.read_delivery(delivery COLLATE "default");
BEGIN
    IF lease IS NULL THEN
        PERFORM oncebox.refuse(
            'OB400', 'there is no lease', 'Give the lease that oncebox.claim returned.'
        );
    END IF;
    PERFORM set_config('oncebox.delivery', named.receipt || '.' || named.route, true);
    PERFORM set_config('oncebox.lease', lease::text, true);
    PERFORM oncebox.check_work(named.receipt, named.route, lease);
END
$$;

-- True for the first to commit a key, false ever after; `effect` says who that was.
CREATE FUNCTION oncebox.once(key text, result jsonb DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = oncebox, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    work record := oncebox.current_work();
    written text := oncebox.check_result(result);
    taken text;
BEGIN
    key := oncebox.check_name('key', key COLLATE "default");
    IF starts_with(key COLLATE "default", 'outbox/') THEN
        PERFORM oncebox.refuse(
            'OB400',
            format('the key %s begins with outbox/, as those of messages do', key),
            'Choose another.'
        );
    END IF;
    taken := oncebox.take_effect(
        key COLLATE "default", 'once', work.receipt, work.route, work.lease, work.attempt, written
    );
    IF taken = 'open' THEN
        PERFORM oncebox.refuse_open(key);
    END IF;
    RETURN taken = 'first';
END
$$;

-- What the ledger has under a key; no row if nothing. Needs no delivery.
CREATE FUNCTION oncebox.effect(
    INOUT key text,
    OUT kind text,
    OUT state text,
    OUT receipt uuid,
    OUT route text,
    OUT attempt integer,
    OUT at timestamptz,
    OUT result jsonb
) RETURNS SETOF record
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = oncebox, pg_temp
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        e.key, e.kind, e.state, e.receipt, e.route_name, e.attempt, e.at,
        oncebox.read_result(e.result)
    FROM oncebox.known_effects AS e
    WHERE e.key = effect.key COLLATE "C";
END
$$;

-- True if a stage of this delivery is to be run now; false if an attempt before has done it.
CREATE FUNCTION oncebox.step(delivery text, name text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = oncebox, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    named record := oncebox.current_step(delivery COLLATE "default", name);
    taken text := oncebox.take_effect(
        named.key, 'step', named.receipt, named.route, named.lease, named.attempt, NULL
    );
BEGIN
    IF taken = 'open' THEN
        PERFORM oncebox.refuse_open(named.key);
    END IF;
    RETURN taken = 'first';
END
$$;

-- Records what came of a step, by the attempt that does it.
CREATE FUNCTION oncebox.set_result(delivery text, name text, result jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = oncebox, pg_temp
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    named record := oncebox.current_step(
        set_result.delivery COLLATE "default", set_result.name
    );
    written text := oncebox.check_result(set_result.result);
BEGIN
    UPDATE oncebox.effects AS e
    SET result = written
    WHERE e.key = named.key
      AND e.state = 'done'
      AND e.receipt = named.receipt
      AND e.route = named.route
      AND e.epoch = named.lease;
    IF NOT FOUND THEN
        PERFORM oncebox.refuse(
            'OB404',
            format('this attempt has not done the step %s', set_result.name),
            'Record a result only where oncebox.step(delivery, name) was true; what an attempt '
            'before has recorded stays.'
        );
    END IF;
END
$$;

-- What was recorded of a step of this delivery; null if nothing.
CREATE FUNCTION oncebox.get_result(delivery text, name text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = oncebox, pg_temp
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    named record := oncebox.current_step(
        get_result.delivery COLLATE "default", get_result.name
    );
    kept text;
BEGIN
    SELECT e.result INTO kept
    FROM oncebox.effects AS e
    WHERE e.key = named.key AND e.state = 'done';
    RETURN oncebox.read_result(kept);
END
$$;

-- True if an object was not past a version yet; it is at that version now. False if this event is
-- stale.
CREATE FUNCTION oncebox.advance(object text, version bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = oncebox, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    work record := oncebox.current_work();
BEGIN
    object := oncebox.check_name('object', object COLLATE "default");
    IF version IS NULL THEN
        PERFORM oncebox.refuse(
            'OB400',
            'there is no version',
            'Give the one that oncebox.claim returned; an event without one cannot be stale.'
        );
    END IF;
    RETURN oncebox.move_watermark(
        work.route, work.source, object COLLATE "default", version
    );
END
$$;

-- Checks a message and writes it; true if it was not written before.
CREATE FUNCTION oncebox.send_checked(
    destination text,
    key text,
    payload bytea,
    "group" text,
    content_type text
) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    work record := oncebox.current_work();
    sent record;
BEGIN
    destination := oncebox.check_name('destination', destination);
    key := oncebox.check_name('key', key);
    IF "group" IS NOT NULL THEN
        "group" := oncebox.check_name('group', "group");
    END IF;
    IF payload IS NULL THEN
        PERFORM oncebox.refuse(
            'OB400', 'there is no payload', 'Give a text, jsonb or bytea; it may be empty.'
        );
    END IF;
    IF octet_length(payload) > 1048576 THEN
        PERFORM oncebox.refuse(
            'OB400',
            format('the payload is %s bytes long, and 1048576 are allowed', octet_length(payload)),
            'Keep it elsewhere and send where it is.'
        );
    END IF;
    -- It becomes a line of headers.
    IF coalesce(content_type, '') !~ '^[ -~]{1,255}$' OR content_type ~ '^ *$' THEN
        PERFORM oncebox.refuse(
            'OB400',
            'the content type is not 1 to 255 plain characters',
            'Give one such as application/json.'
        );
    END IF;
    sent := oncebox.put_message(
        work.receipt, work.route, work.lease, work.attempt, destination, key, payload, "group",
        content_type
    );
    IF sent.outcome = 'nowhere' THEN
        PERFORM oncebox.refuse(
            'OB404',
            format('there is no destination %s', destination),
            format('Add [destinations.%s] to the configuration.', destination)
        );
    END IF;
    RETURN sent.outcome = 'new';
END
$$;

-- Writes a message to a destination of the configuration, to be relayed once this transaction has
-- committed. One key, one message: false if it was written before, whatever its payload was.
-- Messages of one group are delivered in the order they were committed.
CREATE FUNCTION oncebox.send(
    destination text,
    key text,
    payload text,
    "group" text DEFAULT NULL,
    content_type text DEFAULT 'application/json'
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = oncebox, pg_temp
SET enable_seqscan = off
AS $$
BEGIN
    RETURN oncebox.send_checked(
        destination COLLATE "default", key, convert_to(payload, 'UTF8'), "group", content_type
    );
END
$$;

CREATE FUNCTION oncebox.send(
    destination text,
    key text,
    payload jsonb,
    "group" text DEFAULT NULL,
    content_type text DEFAULT 'application/json'
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = oncebox, pg_temp
SET enable_seqscan = off
AS $$
BEGIN
    RETURN oncebox.send_checked(
        destination COLLATE "default", key, convert_to(payload::text, 'UTF8'), "group",
        content_type
    );
END
$$;

CREATE FUNCTION oncebox.send(
    destination text,
    key text,
    payload bytea,
    "group" text DEFAULT NULL,
    content_type text DEFAULT 'application/json'
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = oncebox, pg_temp
SET enable_seqscan = off
AS $$
BEGIN
    RETURN oncebox.send_checked(
        destination COLLATE "default", key, payload, "group", content_type
    );
END
$$;

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA oncebox FROM PUBLIC;
