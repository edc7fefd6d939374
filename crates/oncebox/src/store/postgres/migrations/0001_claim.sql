-- Claims through SQL; see docs/effects.md.
--
-- A worker claims in a transaction of its own and commits it. Time is the clock's, never now(): a
-- transaction may be old when it says something, and so may a statement when it has its locks.
--
-- Plans are kept as long as a session. One made while a table was empty must do when it holds a
-- million rows, so what may be called leaves the planner no choice, as the store's sessions do.

-- What a worker is told of a delivery that it has claimed.
CREATE TYPE oncebox.claimed AS (
    delivery text,
    lease bigint,
    lease_until timestamptz,
    receipt uuid,
    source text,
    event_id text,
    event_type text,
    object_id text,
    object_version bigint,
    received_at timestamptz,
    attempt integer,
    replay integer,
    key text,
    headers jsonb,
    body bytea
);

-- Of a route that is pushed: what a worker takes there would never be.
CREATE FUNCTION oncebox.refuse_pushed(route text)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM oncebox.refuse(
        'OB412',
        format('the route %s is pushed, so nothing of it can be claimed or ended here', route),
        CASE
            WHEN starts_with(route, 'outbox/')
                THEN 'Its messages go to the url of their destination; claim from a route with '
                     'pull = true.'
            ELSE 'Write pull = true instead of push in the configuration, and have the server '
                 'read it.'
        END
    );
END
$$;

-- As `delivery::idempotency_key`: each part with its length before it, so that no two lists of
-- parts are one text. A twin or conflict adds its digest. An outbox message has the key its sender
-- gave it.
CREATE FUNCTION oncebox.delivery_key(source text, event_id text, route text, odd_digest bytea)
RETURNS text
LANGUAGE plpgsql
STABLE
AS $$
DECLARE
    part bytea;
    parts bytea := '';
BEGIN
    IF starts_with(source, 'outbox/') THEN
        RETURN event_id;
    END IF;
    FOREACH part IN ARRAY array_remove(
        ARRAY[
            convert_to(source, 'UTF8'), convert_to(event_id, 'UTF8'), convert_to(route, 'UTF8'),
            odd_digest
        ],
        NULL
    ) LOOP
        parts := parts || int8send(octet_length(part)) || part;
    END LOOP;
    RETURN 'ob_' || encode(substr(sha256(parts), 1, 16), 'hex');
END
$$;

-- Headers as they are stored, a line each, as an object: a name has its value, or an array if it
-- came more than once.
CREATE FUNCTION oncebox.headers_of(lines bytea)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
AS $$
DECLARE
    clean bytea := lines;
    words text;
    headers jsonb;
BEGIN
    -- HTTP has no NUL in a header, and neither can text have one.
    WHILE position('\x00'::bytea IN clean) > 0 LOOP
        clean := overlay(clean PLACING '' FROM position('\x00'::bytea IN clean) FOR 1);
    END LOOP;
    words := convert_from(clean, 'LATIN1');
    -- Nobody says in which encoding a header is. What reads as UTF-8 is.
    IF octet_length(words) > octet_length(clean) THEN
        BEGIN
            words := convert_from(clean, 'UTF8');
        EXCEPTION
            WHEN character_not_in_repertoire OR untranslatable_character THEN NULL;
        END;
    END IF;
    SELECT jsonb_object_agg(
        h.name,
        CASE jsonb_array_length(h.contents) WHEN 1 THEN h.contents -> 0 ELSE h.contents END
    )
    INTO headers
    FROM (
        SELECT
            lower(split_part(l.line, ':', 1) COLLATE "C") AS name,
            jsonb_agg(substr(l.line, strpos(l.line, ':') + 2) ORDER BY l.n) AS contents
        FROM string_to_table(words, E'\n') WITH ORDINALITY AS l (line, n)
        WHERE strpos(l.line, ':') > 0
        GROUP BY 1
    ) AS h;
    RETURN coalesce(headers, '{}');
END
$$;

-- How many of these receipts, from the first on, fit limits::PULL_BYTES; at least one. That they
-- are named before, and not found on the way, keeps the plan to the days in which they lie, if it
-- is made for them.
CREATE FUNCTION oncebox.count_fitting(receipts uuid[])
RETURNS integer
LANGUAGE plpgsql
STABLE
SET plan_cache_mode = force_custom_plan
AS $$
BEGIN
    RETURN (
        SELECT count(*)
        FROM (
            SELECT u.n, sum(r.bytes) OVER (ORDER BY u.n) AS bytes
            FROM unnest(receipts) WITH ORDINALITY AS u (id, n)
            LEFT JOIN LATERAL (
                SELECT octet_length(r.headers) + octet_length(r.body) AS bytes
                FROM oncebox.receipts AS r
                WHERE r.id = u.id AND r.id = ANY (receipts)
                OFFSET 0
            ) AS r ON true
        ) AS s
        WHERE s.n = 1 OR coalesce(s.bytes, 0) <= 8388608
    );
END
$$;

-- The least suspicion among what is due of a route after its lease was lost; NULL if nothing is.
CREATE FUNCTION oncebox.least_suspicion(of_route smallint)
RETURNS smallint
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN (
        SELECT d.lost
        FROM oncebox.deliveries AS d
        WHERE d.route = of_route
          AND d.lost > 0
          AND d.state NOT IN ('processing', 'held', 'dead')
          AND d.due_at <= clock_timestamp()
        ORDER BY d.lost, d.due_at, d.receipt
        LIMIT 1
    );
END
$$;

-- As `Suspicion::group`: how many of the same suspicion one claim takes.
CREATE FUNCTION oncebox.suspects_of(suspicion smallint, most integer)
RETURNS integer
LANGUAGE sql
IMMUTABLE
AS $$
    SELECT CASE suspicion WHEN 1 THEN most WHEN 2 THEN greatest((most + 7) / 8, 1) ELSE 1 END
$$;

-- As claim.sql, for one route. Payloads of no more than limits::PULL_BYTES, or one that is larger;
-- what does not fit is free again with the commit.
CREATE FUNCTION oncebox.claim_plain(
    of_route smallint, most integer, lasting interval, who text, OUT leased oncebox.deliveries[]
)
LANGUAGE plpgsql
AS $$
DECLARE
    at CONSTANT timestamptz := clock_timestamp();
    suspicion CONSTANT smallint := oncebox.least_suspicion(of_route);
    tids tid[];
    receipts uuid[];
    fitting integer;
BEGIN
    WITH lost AS MATERIALIZED (
        SELECT d.ctid AS tid, d.receipt, d.due_at
        FROM oncebox.deliveries AS d
        WHERE d.route = of_route
          AND d.lost = suspicion
          AND d.lost > 0
          AND d.state NOT IN ('processing', 'held', 'dead')
          AND d.due_at <= at
        ORDER BY d.due_at, d.receipt
        LIMIT oncebox.suspects_of(suspicion, most)
        FOR UPDATE SKIP LOCKED
    ),
    due AS MATERIALIZED (
        SELECT d.ctid AS tid, d.receipt, d.due_at
        FROM oncebox.deliveries AS d
        WHERE NOT EXISTS (SELECT 1 FROM lost)
          AND d.route = of_route
          AND d.lost = 0
          AND d.state IN ('received', 'retrying')
          AND d.due_at <= at
        ORDER BY d.due_at, d.receipt
        LIMIT most
        FOR UPDATE SKIP LOCKED
    )
    SELECT
        array_agg(p.tid ORDER BY p.due_at, p.receipt),
        array_agg(p.receipt ORDER BY p.due_at, p.receipt)
    INTO tids, receipts
    FROM (SELECT * FROM lost UNION ALL SELECT * FROM due) AS p;
    -- They are locked: they stay where they lie.
    fitting := oncebox.count_fitting(receipts);
    WITH leased AS (
        UPDATE oncebox.deliveries AS d
        SET
            state = 'processing',
            attempts = d.attempts + 1,
            epoch = (((d.epoch >> 20) + 1) << 20) | floor(random() * 1048576)::bigint,
            lease_until = at + lasting,
            worker = who,
            claimed_in = pg_current_xact_id(),
            lost = CASE WHEN d.lost > 0 AND fitting = 1 THEN 3 ELSE d.lost END
        WHERE d.ctid = ANY (tids[:fitting])
        RETURNING d AS delivery
    )
    SELECT array_agg(l.delivery) INTO leased FROM leased AS l;
END
$$;

-- As find_candidates.sql: what is due of a route, not yet locked. What was lost before is apart.
-- Payloads of no more than limits::PULL_BYTES, or one that is larger.
CREATE FUNCTION oncebox.find_candidates(of_route smallint, most integer)
RETURNS SETOF oncebox.deliveries
LANGUAGE plpgsql
AS $$
DECLARE
    at CONSTANT timestamptz := clock_timestamp();
    suspicion CONSTANT smallint := oncebox.least_suspicion(of_route);
    picked oncebox.deliveries[];
BEGIN
    WITH lost AS MATERIALIZED (
        SELECT d.*
        FROM oncebox.deliveries AS d
        WHERE d.route = of_route
          AND d.lost = suspicion
          AND d.lost > 0
          AND d.state NOT IN ('processing', 'held', 'dead')
          AND d.due_at <= at
        ORDER BY d.due_at, d.receipt
        LIMIT oncebox.suspects_of(suspicion, most)
    ),
    due AS MATERIALIZED (
        SELECT d.*
        FROM oncebox.deliveries AS d
        WHERE NOT EXISTS (SELECT 1 FROM lost)
          AND d.route = of_route
          AND d.lost = 0
          AND d.state IN ('received', 'retrying')
          AND d.due_at <= at
        ORDER BY d.due_at, d.receipt
        LIMIT most
    )
    SELECT array_agg(p.delivery ORDER BY p.due_at, p.receipt) INTO picked
    FROM (
        SELECT l AS delivery, l.due_at, l.receipt FROM lost AS l
        UNION ALL
        SELECT d, d.due_at, d.receipt FROM due AS d
    ) AS p;
    RETURN QUERY
    SELECT p.*
    FROM unnest(
        picked[:oncebox.count_fitting(ARRAY(SELECT p.receipt FROM unnest(picked) AS p))]
    ) AS p;
END
$$;

-- What the worker is told of deliveries under leases, oldest first. The route is named as it was
-- born. A body that does not match its digest is handed to no worker: its delivery is held.
CREATE FUNCTION oncebox.tell(leased oncebox.deliveries[], of_route text)
RETURNS SETOF oncebox.claimed
LANGUAGE plpgsql
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    receipts CONSTANT uuid[] := ARRAY(SELECT l.receipt FROM unnest(leased) AS l);
    damaged uuid[];
BEGIN
    SELECT coalesce(array_agg(d.receipt), '{}') INTO damaged
    FROM unnest(leased) AS d
    CROSS JOIN LATERAL (
        SELECT r.body, r.digest
        FROM oncebox.receipts AS r
        WHERE r.id = d.receipt AND r.id = ANY (receipts)
        OFFSET 0
    ) AS r
    WHERE sha256(r.body) <> r.digest;
    IF damaged <> '{}' THEN
        UPDATE oncebox.deliveries AS d
        SET
            state = 'held',
            reason = 'damaged',
            attempts = d.attempts - 1,
            lease_until = NULL,
            worker = NULL,
            lost = 0,
            detail = 'the stored body does not match the digest taken when it arrived'
        FROM unnest(leased) AS l
        WHERE d.receipt = l.receipt AND d.route = l.route AND l.receipt = ANY (damaged);
        RAISE WARNING 'oncebox holds deliveries of damaged receipts: %', damaged;
    END IF;
    RETURN QUERY
    SELECT
        d.receipt || '.' || d.route, d.epoch, d.lease_until, d.receipt, s.name, r.event_id,
        r.event_type, r.object, r.version, r.received_at, d.attempts, d.replays,
        oncebox.delivery_key(
            s.born_as, r.event_id, of_route,
            CASE WHEN r.oddity IN ('twin', 'conflict') THEN r.digest END
        ),
        oncebox.headers_of(r.headers), r.body
    FROM unnest(leased) AS d
    CROSS JOIN LATERAL (
        SELECT s.name, s.born_as FROM oncebox.sources AS s WHERE s.no = d.source OFFSET 0
    ) AS s
    CROSS JOIN LATERAL (
        SELECT r.*
        FROM oncebox.receipts AS r
        WHERE r.id = d.receipt AND r.id = ANY (receipts)
        OFFSET 0
    ) AS r
    WHERE d.receipt <> ALL (damaged)
    ORDER BY d.due_at, d.receipt;
END
$$;

-- Refuses a length that no lease has.
CREATE FUNCTION oncebox.check_length(lasting interval)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF (lasting BETWEEN '1 second' AND '1 hour') IS NOT TRUE THEN
        PERFORM oncebox.refuse(
            'OB400',
            format('a lease of %s cannot be given', coalesce(lasting::text, 'NULL')),
            'Ask for between 1 second and 1 hour, and extend it as often as needed.'
        );
    END IF;
END
$$;

-- Claims due deliveries of a route, oldest first, under leases of a length between a second and an
-- hour; counts the attempt. Never more than wanted, nor than limits::CLAIM_ROWS. Those whose last
-- lease was lost come apart. What the route's guards skip or hold is moved out of the way. Commit
-- before the work begins: nobody else gets at what this transaction has locked.
CREATE FUNCTION oncebox.claim(
    route text, max integer DEFAULT 10, lease interval DEFAULT '30 seconds'
)
RETURNS SETOF oncebox.claimed
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = oncebox, pg_temp
-- What somebody holds for longer is left for now.
SET lock_timeout = '250ms'
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
DECLARE
    began CONSTANT timestamptz := clock_timestamp();
    most CONSTANT integer := least(max, 256);
    -- Lists show what is before the mark; see unheard.rs.
    who CONSTANT text := coalesce(nullif(current_setting('application_name'), ''), session_user)
        || '#' || to_hex(pg_backend_pid());
    rules oncebox.routes;
    leased oncebox.deliveries[];
    moved integer;
BEGIN
    IF (max >= 1) IS NOT TRUE THEN
        PERFORM oncebox.refuse(
            'OB400',
            format('"max" is %s', coalesce(max::text, 'NULL')),
            'Ask for at least 1 delivery; no more than 256 are given at once.'
        );
    END IF;
    PERFORM oncebox.check_length(lease);
    -- Guards are judged by what others committed until their locks were had.
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        PERFORM oncebox.refuse(
            'OB412',
            'a claim needs a transaction that is READ COMMITTED',
            'Claim in a transaction of its own, BEGIN ISOLATION LEVEL READ COMMITTED.'
        );
    END IF;
    SELECT r.* INTO rules FROM oncebox.routes AS r WHERE r.name = claim.route;
    IF NOT FOUND THEN
        PERFORM oncebox.refuse(
            'OB404',
            format('there is no route %L', left(claim.route, 100)),
            'Routes are those of the configuration, stored when the server has started '
            'with it; see `oncebox routes list`.'
        );
    END IF;
    PERFORM oncebox.check_route(rules.no, rules.name);
    IF NOT rules.pulled THEN
        PERFORM oncebox.refuse_pushed(rules.name);
    END IF;
    IF rules.paused_at IS NOT NULL OR rules.fill_after IS NOT NULL THEN
        RETURN;
    END IF;
    IF NOT (rules.ordered OR rules.skip_stale OR rules.same_operation_ms IS NOT NULL) THEN
        leased := oncebox.claim_plain(rules.no, most, lease, who);
    ELSE
        SELECT c.leased, c.moved INTO leased, moved
        FROM oncebox.claim_judged(rules, most, lease, who) AS c;
        -- One that only moved others out of the way has not seen what is behind them.
        WHILE moved > 0 AND cardinality(leased) = 0
            AND clock_timestamp() < began + interval '250 milliseconds'
        LOOP
            SELECT c.leased, c.moved INTO leased, moved
            FROM oncebox.claim_judged_again(rules, most, lease, who) AS c;
        END LOOP;
    END IF;
    RETURN QUERY SELECT t.* FROM oncebox.tell(leased, rules.born_as) AS t;
END
$$;
