-- Receipts, requests, finished deliveries and attempts lie in a table for each day by which receipt
-- ids begin, such as `receipts_20774` (days since 1970), so that a day goes as a whole. What is
-- older than all days lies in one table, such as `receipts_before_20740`: what was unfinished when
-- its day went, and what a clock that was far behind has minted.

-- Which days there are. A delivery is opened again only while its day is not `closing`. A day that
-- is `gone` is out of the tables, and counted out; `before` is the last one that went.
CREATE TABLE oncebox.days (
    day integer PRIMARY KEY,
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closing', 'gone', 'before')),
    -- How far what has gone was counted out.
    counted uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'
);

-- The id that all of this day and of later ones come after.
CREATE FUNCTION oncebox.first_of_day(day integer)
RETURNS uuid
LANGUAGE sql
IMMUTABLE
AS $$
    SELECT (lpad(to_hex(day::bigint * 86400000), 12, '0') || '00000000000000000000')::uuid
$$;

-- The day in which an id lies.
CREATE FUNCTION oncebox.day_of(id uuid)
RETURNS integer
LANGUAGE sql
IMMUTABLE
AS $$
    SELECT (('x' || substr(replace(id::text, '-', ''), 1, 12))::bit(48)::bigint / 86400000)::integer
$$;

-- Which tables lie in days.
CREATE FUNCTION oncebox.daily()
RETURNS text[]
LANGUAGE sql
IMMUTABLE
AS $$
    SELECT ARRAY['receipts', 'requests', 'finished', 'attempts']
$$;

-- Whether the caller is the owner of the schema, or a member of it. Functions of the SQL door run
-- as the owner, so the caller is the role that was set, or else the one that logged in.
CREATE FUNCTION oncebox.is_owner()
RETURNS boolean
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = oncebox, pg_temp
AS $$
DECLARE
    chosen CONSTANT text := current_setting('role');
    caller CONSTANT name := CASE WHEN chosen = 'none' THEN session_user ELSE chosen END;
BEGIN
    RETURN pg_has_role(caller, current_user, 'USAGE');
END
$$;

-- Makes the tables of days, where there are none yet. Writers wait only for a moment. The session
-- that inserts the row makes the tables, so that of two sessions one does. Says how many it made.
CREATE FUNCTION oncebox.make_days(first integer, last integer)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = oncebox, pg_temp
AS $$
DECLARE
    oldest CONSTANT integer := (
        SELECT max(d.day) FROM oncebox.days AS d WHERE d.state IN ('gone', 'before')
    );
    made integer := 0;
    new integer;
    parent text;
BEGIN
    IF NOT oncebox.is_owner() THEN
        -- Other roles need the day of a message that they send.
        IF first < oncebox.today() OR last > oncebox.today() + 1 THEN
            PERFORM oncebox.refuse(
                'OB403', 'this role may make no table but that of today',
                'The server makes those of other days.'
            );
        END IF;
    END IF;
    FOR new IN greatest(first, oldest + 1)..last LOOP
        INSERT INTO oncebox.days (day) VALUES (new) ON CONFLICT DO NOTHING;
        CONTINUE WHEN NOT FOUND;
        FOREACH parent IN ARRAY oncebox.daily() LOOP
            EXECUTE format(
                'CREATE TABLE oncebox.%1$s_%2$s (LIKE oncebox.%1$s INCLUDING ALL)
                    WITH (autovacuum_vacuum_scale_factor = 0.02)',
                parent, new
            );
            EXECUTE format(
                'ALTER TABLE oncebox.%1$s ATTACH PARTITION oncebox.%1$s_%2$s
                    FOR VALUES FROM (%3$L) TO (%4$L)',
                parent, new, oncebox.first_of_day(new), oncebox.first_of_day(new + 1)
            );
        END LOOP;
        made := made + 1;
    END LOOP;
    RETURN made;
END
$$;

-- Takes the oldest day, which is closing, out of the tables, but for what has an open delivery:
-- that is moved to what is older than all days, in the same transaction. Open deliveries are locked
-- first: no worker ends one, and so writes of it, before the commit. Only then, and for a moment,
-- all other sessions are locked out; `wait` bounds how long they queue for each table. The commit
-- is not synced while they wait: a crash brings the day back as it was.
-- Says whether it is `out`, or `crowded`: more than `most` deliveries are open. NULL if the day is
-- not closing any more.
CREATE FUNCTION oncebox.take_out_day(of_day integer, most integer, wait interval)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = oncebox, pg_temp
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    bound CONSTANT uuid := oncebox.first_of_day(of_day + 1);
    -- Events of one request may lie in two days. It has an id by which it lies in the first.
    last_minute CONSTANT uuid := (
        lpad(to_hex((of_day + 1)::bigint * 86400000 - 60000), 12, '0') || repeat('0', 20)
    )::uuid;
    older integer;
    unfinished uuid[];
    kept uuid[];
    parent text;
    piece text;
    of_receipts boolean;
BEGIN
    PERFORM FROM oncebox.days AS d WHERE d.day = of_day AND d.state = 'closing' FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT d.day + 1 INTO STRICT older FROM oncebox.days AS d WHERE d.state = 'before';
    SELECT coalesce(array_agg(d.receipt), '{}') INTO unfinished
    FROM (
        SELECT d.receipt
        FROM oncebox.deliveries AS d
        WHERE d.receipt < bound
        ORDER BY d.receipt, d.route
        LIMIT most + 1
        FOR UPDATE
    ) AS d;
    IF cardinality(unfinished) > most THEN
        RETURN 'crowded';
    END IF;
    FOREACH parent IN ARRAY oncebox.daily() LOOP
        of_receipts := parent IN ('receipts', 'requests');
        EXECUTE format(
            'CREATE TABLE oncebox.%1$s_before_%2$s (LIKE oncebox.%1$s INCLUDING ALL,
                CONSTRAINT %1$s_before CHECK (%3$s < %4$L))',
            parent, of_day + 1, CASE WHEN of_receipts THEN 'id' ELSE 'receipt' END, bound
        );
        kept := unfinished;
        IF parent = 'requests' THEN
            EXECUTE format(
                'SELECT coalesce(array_agg(DISTINCT r.request), ''{}'')
                FROM oncebox.receipts_before_%s AS r WHERE r.request IS NOT NULL',
                of_day + 1
            ) INTO kept;
        END IF;
        FOREACH piece IN ARRAY ARRAY['before_' || older, of_day::text] LOOP
            EXECUTE format(
                'WITH moved AS (
                    DELETE FROM oncebox.%1$s_%2$s WHERE %3$s = ANY ($1) OR %3$s >= $2 RETURNING *
                )
                INSERT INTO oncebox.%1$s_before_%4$s SELECT * FROM moved',
                parent, piece, CASE WHEN of_receipts THEN 'id' ELSE 'receipt' END, of_day + 1
            )
            USING kept, CASE parent WHEN 'requests' THEN last_minute ELSE bound END;
        END LOOP;
    END LOOP;

    PERFORM set_config('lock_timeout', extract(milliseconds FROM wait)::integer::text, true);
    PERFORM set_config('synchronous_commit', 'off', true);
    LOCK TABLE ONLY oncebox.receipts, ONLY oncebox.requests, ONLY oncebox.finished,
        ONLY oncebox.attempts IN ACCESS EXCLUSIVE MODE;
    -- Those who were waited for may have opened more: by a replay of what is older than all days,
    -- or under a clock that is far behind. What was open before is locked, so the count tells.
    IF (SELECT count(*) FROM oncebox.deliveries AS d WHERE d.receipt < bound)
        <> cardinality(unfinished)
    THEN
        RAISE EXCEPTION 'deliveries were opened meanwhile' USING ERRCODE = 'lock_not_available';
    END IF;
    FOREACH parent IN ARRAY oncebox.daily() LOOP
        EXECUTE format(
            'ALTER TABLE oncebox.%1$s DETACH PARTITION oncebox.%1$s_before_%2$s;
            ALTER TABLE oncebox.%1$s DETACH PARTITION oncebox.%1$s_%3$s;
            ALTER TABLE oncebox.%1$s ATTACH PARTITION oncebox.%1$s_before_%4$s
                FOR VALUES FROM (MINVALUE) TO (%5$L);
            -- Vacuum would hold up the drop of these tables.
            ALTER TABLE oncebox.%1$s_before_%2$s SET (autovacuum_enabled = off);
            ALTER TABLE oncebox.%1$s_%3$s SET (autovacuum_enabled = off)',
            parent, older, of_day, of_day + 1, bound
        );
    END LOOP;
    UPDATE oncebox.days AS d SET state = 'gone' WHERE d.day = of_day;
    RETURN 'out';
END
$$;

-- Counts out a part of a day that is gone: up to `most` receipts, with what goes with them. Once
-- all are counted out, their tables are dropped. Says how many receipts these were; `is_over` once
-- nothing is left of the day.
CREATE FUNCTION oncebox.count_out_day(
    of_day integer, most integer, OUT removed bigint, OUT is_over boolean
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = oncebox, pg_temp
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    since uuid;
    until uuid;
    older integer;
    parent text;
BEGIN
    removed := 0;
    is_over := true;
    SELECT d.counted INTO since
    FROM oncebox.days AS d
    WHERE d.day = of_day AND d.state = 'gone'
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT d.day + 1 INTO STRICT older FROM oncebox.days AS d WHERE d.state = 'before';
    EXECUTE format(
        'SELECT count(*), (array_agg(r.id ORDER BY r.id DESC))[1]
        FROM (
            SELECT r.id
            FROM (
                SELECT id FROM oncebox.receipts_before_%s UNION ALL
                SELECT id FROM oncebox.receipts_%s
            ) AS r
            WHERE r.id > $1
            ORDER BY r.id
            LIMIT $2
        ) AS r',
        older, of_day
    )
    INTO removed, until
    USING since, most;
    is_over := removed < most;
    IF is_over THEN
        until := oncebox.first_of_day(of_day + 1);
    END IF;

    EXECUTE format(
        'WITH gone AS MATERIALIZED (
            SELECT r.id, r.source, octet_length(r.headers) + octet_length(r.body) AS bytes
            FROM (
                SELECT id, source, headers, body FROM oncebox.receipts_before_%1$s UNION ALL
                SELECT id, source, headers, body FROM oncebox.receipts_%2$s
            ) AS r
            WHERE r.id > $1 AND r.id <= $2
        ),
        repeated AS (
            DELETE FROM oncebox.repeats WHERE receipt = ANY (ARRAY(SELECT id FROM gone))
        ),
        counted AS (
            INSERT INTO oncebox.delivery_deltas (minute, came, went, route, state, reason)
            SELECT
                floor(extract(epoch FROM clock_timestamp()) / 60)::integer, 0, count(*), f.route,
                f.state, coalesce(f.reason, '''')
            FROM (
                SELECT * FROM oncebox.finished_before_%1$s UNION ALL
                SELECT * FROM oncebox.finished_%2$s
            ) AS f
            WHERE f.receipt > $1 AND f.receipt <= $2
            GROUP BY f.route, f.state, f.reason
        ),
        freed AS (
            SELECT b.source, sum(b.bytes)::bigint AS bytes
            FROM (
                SELECT source, bytes FROM gone UNION ALL
                SELECT q.source, octet_length(q.body)
                FROM (
                    SELECT id, source, body FROM oncebox.requests_before_%1$s UNION ALL
                    SELECT id, source, body FROM oncebox.requests_%2$s
                ) AS q
                WHERE q.id > $1 AND q.id <= $2
            ) AS b
            GROUP BY b.source
        )
        UPDATE oncebox.sources AS s
        SET stored = greatest(s.stored - f.bytes, 0)
        FROM freed AS f
        WHERE s.no = f.source',
        older, of_day
    )
    USING since, until;
    IF NOT is_over THEN
        UPDATE oncebox.days AS d SET counted = until WHERE d.day = of_day;
        RETURN;
    END IF;
    FOREACH parent IN ARRAY oncebox.daily() LOOP
        EXECUTE format(
            'DROP TABLE oncebox.%1$s_before_%2$s, oncebox.%1$s_%3$s', parent, older, of_day
        );
    END LOOP;
    DELETE FROM oncebox.days AS d WHERE d.state = 'before';
    UPDATE oncebox.days AS d SET state = 'before' WHERE d.day = of_day;
END
$$;

-- The first tables: for what is older than yesterday, and two weeks ahead.
DO $$
DECLARE
    today CONSTANT integer := floor(extract(epoch FROM clock_timestamp()) / 86400);
    parent text;
BEGIN
    INSERT INTO oncebox.days (day, state) VALUES (today - 2, 'before');
    FOREACH parent IN ARRAY oncebox.daily() LOOP
        EXECUTE format(
            'CREATE TABLE oncebox.%1$s_before_%2$s PARTITION OF oncebox.%1$s
                FOR VALUES FROM (MINVALUE) TO (%3$L)',
            parent, today - 1, oncebox.first_of_day(today - 1)
        );
    END LOOP;
    PERFORM oncebox.make_days(today - 1, today + 14);
END
$$;
