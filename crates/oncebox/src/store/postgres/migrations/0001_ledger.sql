-- The ledger below the verbs, shared with the store itself: it answers with words where it can.

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

-- Lets go the deliveries that are held for an effect: its outcome is known. By their keys: one that
-- is changed while its lock is waited for has moved by then.
CREATE FUNCTION oncebox.release_parked(key text) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    released bigint;
BEGIN
    WITH parked AS MATERIALIZED (
        SELECT d.receipt, d.route
        FROM oncebox.deliveries AS d
        WHERE d.effect = release_parked.key AND d.reason = 'unknown-effect'
        ORDER BY d.receipt, d.route
        FOR UPDATE
    )
    UPDATE oncebox.deliveries AS d
    SET state = 'retrying', reason = NULL, effect = NULL, due_at = clock_timestamp()
    FROM parked AS p
    WHERE d.receipt = p.receipt AND d.route = p.route;
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
    -- Days are made ahead; this is for a service that sends while no node has run for long.
    IF NOT EXISTS (SELECT 1 FROM oncebox.days AS d WHERE d.day = oncebox.today()) THEN
        PERFORM oncebox.make_days(oncebox.today(), oncebox.today());
    END IF;
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

-- The unit in which a version reads as a time since 1970; NULL if it reads as none. As
-- `checks::unit`.
CREATE FUNCTION oncebox.unit_of(version bigint) RETURNS text
LANGUAGE sql
IMMUTABLE
AS $$
    SELECT CASE
        WHEN version >= 100000000 AND version < 10000000000 THEN 'seconds'
        WHEN version >= 100000000000 AND version < 10000000000000 THEN 'milliseconds'
        WHEN version >= 100000000000000 AND version < 10000000000000000 THEN 'microseconds'
        WHEN version >= 100000000000000000 THEN 'nanoseconds'
    END
$$;

-- Refuses a version whose unit is another than that of the object's: it would be stale for ever, or
-- make everything after it stale.
CREATE FUNCTION oncebox.check_unit(object text, version bigint, known bigint) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF oncebox.unit_of(version) <> oncebox.unit_of(known) THEN
        PERFORM oncebox.refuse(
            'OB400',
            format(
                'the version %s reads as %s since 1970, and that of %s, %s, as %s; give '
                'object_version as the claim returned it',
                version, oncebox.unit_of(version), object, known, oncebox.unit_of(known)
            ),
            'Give object_version as the claim returned it.'
        );
    END IF;
END
$$;

-- Never back; an equal version passes. One of another unit than the event's own version, where it
-- is about that object, or else than the watermark is refused. One of the event's own unit replaces
-- a watermark of another unit: that was the wrong one.
CREATE FUNCTION oncebox.move_watermark(
    receipt uuid,
    route smallint,
    source smallint,
    object text,
    version bigint
) RETURNS boolean
LANGUAGE plpgsql
-- So that of the receipts only the day of this one is looked at.
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    own bigint;
    met bigint;
BEGIN
    SELECT r.version INTO own
    FROM oncebox.receipts AS r
    WHERE r.id = move_watermark.receipt AND r.object = move_watermark.object;
    PERFORM oncebox.check_unit(move_watermark.object, move_watermark.version, own);
    INSERT INTO oncebox.lanes AS l (route, source, object, applied, touched)
    VALUES (
        move_watermark.route, move_watermark.source, move_watermark.object,
        move_watermark.version, oncebox.today()
    )
    ON CONFLICT ON CONSTRAINT lanes_pkey
        DO UPDATE SET applied = excluded.applied, touched = excluded.touched
        WHERE l.applied IS NULL
            OR l.applied <= excluded.applied
            AND (oncebox.unit_of(l.applied) <> oncebox.unit_of(excluded.applied)) IS NOT TRUE
            OR oncebox.unit_of(l.applied) <> oncebox.unit_of(excluded.applied)
            AND oncebox.unit_of(excluded.applied) = oncebox.unit_of(own);
    IF FOUND THEN
        RETURN true;
    END IF;
    -- The row is locked by now: what it says stays so.
    SELECT l.applied INTO met
    FROM oncebox.lanes AS l
    WHERE l.route = move_watermark.route AND l.source = move_watermark.source
      AND l.object = move_watermark.object;
    PERFORM oncebox.check_unit(move_watermark.object, move_watermark.version, met);
    RETURN false;
END
$$;
