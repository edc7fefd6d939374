-- A delivery as it is written: its receipt, a dot, and the number of its route. Through SQL nobody
-- works on one that is pushed: not an event, nor a message of the outbox. It could not be claimed;
-- but whoever guessed its lease, which is a number to tell claims apart and no secret, could have
-- ended it. So it is refused here, before anybody looks at a lease.
CREATE OR REPLACE FUNCTION oncebox.read_delivery(
    delivery text, OUT receipt uuid, OUT route smallint
)
LANGUAGE plpgsql
AS $$
DECLARE
    pushed text;
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
    SELECT t.name INTO pushed
    FROM oncebox.routes AS t
    WHERE t.no = read_delivery.route AND NOT t.pulled;
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

REVOKE ALL ON FUNCTION oncebox.count_conflict() FROM PUBLIC;
