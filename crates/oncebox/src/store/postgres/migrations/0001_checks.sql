-- What the functions of the SQL door ask before they do anything: is the input good, is the lease?

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

-- A delivery as it is written: its receipt, a dot, and the number of its route. Through SQL nobody
-- works on one that is pushed: not an event, nor a message of the outbox. It could not be claimed;
-- but whoever guessed its lease, which is a number to tell claims apart and no secret, could have
-- ended it. So it is refused here, before anybody looks at a lease.
CREATE FUNCTION oncebox.read_delivery(
    delivery text, OUT receipt uuid, OUT route smallint
)
LANGUAGE plpgsql
AS $$
DECLARE
    named record;
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
    SELECT t.name, t.pulled INTO named FROM oncebox.routes AS t WHERE t.no = read_delivery.route;
    IF FOUND THEN
        PERFORM oncebox.check_route(read_delivery.route, named.name);
        IF NOT named.pulled THEN
            PERFORM oncebox.refuse_pushed(named.name);
        END IF;
    END IF;
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

-- Says what became of a delivery whose lease is not good. Whether a lease that is wrong is too low
-- or too high is not told.
CREATE FUNCTION oncebox.refuse_lost(
    delivery text, state text, epoch bigint, lease bigint
)
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
        'Roll back: somebody else has it or will. Give the lease that oncebox.claim returned with '
        'the delivery; claim for longer, or extend in time with oncebox.extend on another '
        'connection. In a transaction, finish is the last verb.'
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
