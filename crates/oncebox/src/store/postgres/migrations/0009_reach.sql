-- Through SQL nobody works on a delivery that is pushed: not an event, nor a message of the outbox.
-- It could not be claimed; but whoever guessed its lease, which is a number to tell claims apart
-- and no secret, could have ended it. So the route is asked before the lease is looked at.
CREATE FUNCTION oncebox.check_pulled(route smallint) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    pushed text;
BEGIN
    SELECT t.name INTO pushed
    FROM oncebox.routes AS t
    WHERE t.no = check_pulled.route AND NOT t.pulled;
    IF FOUND THEN
        PERFORM oncebox.refuse_pushed(pushed);
    END IF;
END
$$;

-- As before, for whoever comes with a delivery as well.
CREATE OR REPLACE FUNCTION oncebox.refuse_pushed(route text)
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

-- As before, but whether a lease that is wrong is too low or too high is nobody's business.
CREATE OR REPLACE FUNCTION oncebox.refuse_lost(
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

-- As find_work(), and refuses where there is nothing to work on, or nothing for SQL.
CREATE OR REPLACE FUNCTION oncebox.check_work(
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
    work record;
    delivery text := check_work.receipt || '.' || check_work.route;
    met record;
BEGIN
    PERFORM oncebox.check_pulled(check_work.route);
    work := oncebox.find_work(check_work.receipt, check_work.route, check_work.lease);
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

-- As before, and refuses what is pushed.
CREATE OR REPLACE FUNCTION oncebox.lock_leased(of_receipt uuid, of_route smallint, of_lease bigint)
RETURNS oncebox.deliveries
LANGUAGE plpgsql
AS $$
DECLARE
    seen oncebox.deliveries;
    mine oncebox.deliveries;
BEGIN
    PERFORM oncebox.check_pulled(of_route);
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

-- As before, but by the keys of deliveries: one that is changed while its lock is waited for has
-- moved by then.
CREATE OR REPLACE FUNCTION oncebox.release_parked(key text) RETURNS bigint
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

-- How many conflicts were ever noted, through whichever door: a number that is read at once,
-- however many there are, and that does not fall when some of them expire. What is rolled back
-- counts, too.
CREATE SEQUENCE oncebox.conflicts_noted;

CREATE FUNCTION oncebox.count_conflict() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM nextval('oncebox.conflicts_noted');
    RETURN NULL;
END
$$;

CREATE TRIGGER counted AFTER INSERT ON oncebox.effect_conflicts
FOR EACH ROW EXECUTE FUNCTION oncebox.count_conflict();

REVOKE ALL ON FUNCTION oncebox.check_pulled(smallint), oncebox.count_conflict() FROM PUBLIC;
