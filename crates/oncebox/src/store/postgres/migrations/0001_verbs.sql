-- The verbs, for every language that speaks SQL; see docs/sql.md.
--
-- Those that a role may be allowed to call check what they are given, and refuse with a code and a
-- hint. They run as the owner of the schema, with a search path that nobody else can put anything
-- into, and along indexes: a plan made while a table was empty must do when it holds a million.
-- The functions of 0001_ledger.sql answer with a word where they can, so that the transaction goes
-- on; the Rust code of the store calls those. What is assigned rather than performed is evaluated
-- without a query of its own.
--
-- Whoever needs several locks takes them in this order: effects, groups of messages, lanes,
-- operations, deliveries.
--
-- The text of a caller may have a collation of its own, as a column has, and a function takes that
-- on for all it compares. So what is handed on from here says that it has none.

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

-- The key that the ledger has for one that a worker of a route names: the service of the route goes
-- before it, so that no service takes the key of another. As `EffectKey::of_service`.
CREATE FUNCTION oncebox.ledger_key(of_route smallint, key text) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    of_service text;
BEGIN
    SELECT t.service INTO of_service FROM oncebox.routes AS t WHERE t.no = of_route;
    IF coalesce(of_service, '') = '' THEN
        RETURN key;
    END IF;
    RETURN '@' || of_service || '/' || key;
END
$$;

-- True for the first of its service to commit a key, false ever after; `effect` says who that was.
-- Keys of steps are refused: a caller that took one could have another route's stage skipped. So
-- are those that begin as the keys of another service do.
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
    IF starts_with(key COLLATE "default", '@') THEN
        PERFORM oncebox.refuse(
            'OB400',
            format('the key %s begins with @, as those of services do', key),
            'Leave it out: the service of the route is put before the key.'
        );
    END IF;
    IF key COLLATE "default" ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/' THEN
        PERFORM oncebox.refuse(
            'OB400',
            format('the key %s begins with a UUID and a slash, as those of steps do', key),
            'Call oncebox.step for a stage of this delivery; otherwise put a word before it, as '
            'in order:UUID.'
        );
    END IF;
    key := oncebox.ledger_key(work.route, key COLLATE "default");
    taken := oncebox.take_effect(
        key COLLATE "default", 'once', work.receipt, work.route, work.lease, work.attempt, written
    );
    IF taken = 'open' THEN
        PERFORM oncebox.refuse_open(key);
    END IF;
    RETURN taken = 'first';
END
$$;

-- What the ledger has under a key of the caller's services; no row if nothing. Needs no delivery.
-- Where one was entered, its service is meant, otherwise those of all routes that the caller may
-- work on. A key as the ledger has it is found, too, if such a route did it.
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
DECLARE
    entered CONSTANT text := nullif(current_setting('oncebox.delivery', true), '');
    asked CONSTANT text := effect.key COLLATE "default";
    keys text[];
BEGIN
    IF entered IS NOT NULL THEN
        keys := ARRAY[oncebox.ledger_key((oncebox.read_delivery(entered)).route, asked)];
    ELSE
        SELECT array_agg(DISTINCT oncebox.ledger_key(t.no, asked)) INTO keys
        FROM oncebox.routes AS t
        WHERE t.pulled AND oncebox.may_work(t.no);
    END IF;
    RETURN QUERY
    SELECT
        e.key, e.kind, e.state, e.receipt, e.route_name, e.attempt, e.at,
        oncebox.read_result(e.result)
    FROM oncebox.known_effects AS e
    WHERE e.key = ANY ((keys || asked)::text[] COLLATE "C")
      AND (e.key = ANY (keys COLLATE "C") AND e.kind = 'once' OR oncebox.may_work(e.route));
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
        work.receipt, work.route, work.source, object COLLATE "default", version
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
