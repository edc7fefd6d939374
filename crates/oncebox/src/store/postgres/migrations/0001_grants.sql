-- Who may call what, and on which routes; see docs/sql.md.

-- Which roles work on which routes through SQL.
CREATE TABLE oncebox.route_grants (
    role regrole NOT NULL,
    route smallint NOT NULL REFERENCES oncebox.routes (no),
    PRIMARY KEY (role, route)
);

-- Whether the caller may work on a route. The owner of the schema and its members may work on every
-- route.
CREATE FUNCTION oncebox.may_work(of_route smallint)
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
    RETURN oncebox.is_owner() OR EXISTS (
        SELECT 1
        FROM oncebox.route_grants AS g
        WHERE g.route = of_route AND pg_has_role(caller, g.role::oid, 'USAGE')
    );
END
$$;

-- Refuses a route that the caller may not work on.
CREATE FUNCTION oncebox.check_route(of_route smallint, name text)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF oncebox.may_work(of_route) THEN
        RETURN;
    END IF;
    PERFORM oncebox.refuse(
        'OB403',
        format('this role may not work on the route %s', name),
        format('The owner of the schema allows it: SELECT oncebox.allow(''ROLE'', %L).', name)
    );
END
$$;

-- The role of a name; refuses one that does not exist.
CREATE FUNCTION oncebox.find_role(name text)
RETURNS regrole
LANGUAGE plpgsql
AS $$
DECLARE
    found oid;
BEGIN
    SELECT r.oid INTO found FROM pg_roles AS r WHERE r.rolname = find_role.name;
    IF found IS NULL THEN
        PERFORM oncebox.refuse(
            'OB404',
            format('there is no role %L', left(find_role.name, 100)),
            'Make it with CREATE ROLE first.'
        );
    END IF;
    RETURN found::regrole;
END
$$;

-- The numbers of routes; refuses a name that no route has.
CREATE FUNCTION oncebox.find_routes(names text[])
RETURNS smallint[]
LANGUAGE plpgsql
AS $$
DECLARE
    numbers smallint[] := '{}';
    number smallint;
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY names LOOP
        SELECT t.no INTO number FROM oncebox.routes AS t WHERE t.name = wanted;
        IF NOT FOUND THEN
            PERFORM oncebox.refuse(
                'OB404',
                format('there is no route %L', left(wanted, 100)),
                'Routes are those of the configuration, stored when the server has started '
                'with it; see `oncebox routes list`.'
            );
        END IF;
        numbers := numbers || number;
    END LOOP;
    RETURN numbers;
END
$$;

-- Lets a role call some functions.
CREATE FUNCTION oncebox.grant_calls(role regrole, names text[])
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    verb regprocedure;
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA oncebox TO %s', role);
    FOR verb IN
        SELECT p.oid
        FROM pg_proc AS p
        WHERE p.pronamespace = 'oncebox'::regnamespace AND p.proname = ANY (names)
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', verb, role);
    END LOOP;
END
$$;

-- Lets a role work through SQL on these routes, beside those it was allowed before: call what is
-- meant to be called, and touch nothing else. Without a route it is allowed no further one: after
-- an upgrade that brings new verbs it is called so again. Only for the owner of the schema.
CREATE FUNCTION oncebox.allow(role text, VARIADIC routes text[] DEFAULT '{}')
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = oncebox, pg_temp
AS $$
DECLARE
    who CONSTANT regrole := oncebox.find_role(allow.role);
    numbers CONSTANT smallint[] := oncebox.find_routes(allow.routes);
BEGIN
    PERFORM oncebox.grant_calls(who, ARRAY[
        'claim', 'finish', 'extend', 'return', 'enter', 'once', 'effect', 'step', 'set_result',
        'get_result', 'send', 'advance'
    ]);
    INSERT INTO oncebox.route_grants (role, route)
    SELECT who, n.no FROM unnest(numbers) AS n (no)
    ON CONFLICT DO NOTHING;
    IF NOT EXISTS (SELECT 1 FROM oncebox.route_grants AS g WHERE g.role = who) THEN
        RAISE NOTICE '% may work on no route yet', who
            USING HINT = 'Name them: SELECT oncebox.allow(role, route, …).';
    END IF;
END
$$;

-- Takes routes away from a role; without a route, all of them and the calls. Only for the owner of
-- the schema.
CREATE FUNCTION oncebox.disallow(role text, VARIADIC routes text[] DEFAULT '{}')
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = oncebox, pg_temp
AS $$
DECLARE
    who CONSTANT regrole := oncebox.find_role(disallow.role);
    numbers CONSTANT smallint[] := oncebox.find_routes(disallow.routes);
BEGIN
    DELETE FROM oncebox.route_grants AS g
    WHERE g.role = who AND (numbers = '{}' OR g.route = ANY (numbers));
    IF numbers = '{}' THEN
        EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA oncebox FROM %s', who);
        EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA oncebox FROM %s', who);
        EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA oncebox FROM %s', who);
        EXECUTE format('REVOKE USAGE ON SCHEMA oncebox FROM %s', who);
    END IF;
END
$$;

-- Lets a role run handlers in Rust on these routes, beside an `oncebox serve` of another role: read
-- what was received, and change what is delivered. It reads no token and no secret, makes no table,
-- and changes no route. Called again after an upgrade. Only for the owner of the schema.
CREATE FUNCTION oncebox.allow_handlers(role text, VARIADIC routes text[] DEFAULT '{}')
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = oncebox, pg_temp
AS $$
DECLARE
    who CONSTANT regrole := oncebox.find_role(allow_handlers.role);
BEGIN
    PERFORM oncebox.allow(allow_handlers.role, VARIADIC allow_handlers.routes);
    PERFORM oncebox.grant_calls(who, ARRAY(
        SELECT p.proname::text
        FROM pg_proc AS p
        WHERE p.pronamespace = 'oncebox'::regnamespace
          AND p.proname NOT IN (
              'allow', 'allow_handlers', 'disallow', 'grant_calls', 'take_out_day',
              'count_out_day'
          )
    ));
    EXECUTE format(
        'GRANT SELECT ON oncebox.migrations, oncebox.schema_epoch, oncebox.sources, '
        'oncebox.routes, oncebox.route_grants, oncebox.days, oncebox.receipts, '
        'oncebox.deliveries, oncebox.finished, oncebox.attempts, oncebox.lanes, '
        'oncebox.operations, oncebox.effects, oncebox.known_effects, oncebox.unanswered, '
        'oncebox.effect_conflicts, oncebox.outbox_groups, oncebox.audit, oncebox.breakers '
        'TO %s', who
    );
    EXECUTE format(
        'GRANT INSERT, UPDATE, DELETE ON oncebox.deliveries, oncebox.lanes, '
        'oncebox.operations, oncebox.effects, oncebox.unanswered, oncebox.effect_conflicts, '
        'oncebox.outbox_groups, oncebox.breakers TO %s', who
    );
    EXECUTE format(
        'GRANT INSERT ON oncebox.receipts, oncebox.finished, oncebox.attempts, '
        'oncebox.delivery_deltas TO %s', who
    );
    EXECUTE format('GRANT UPDATE (fill_after) ON oncebox.routes TO %s', who);
    EXECUTE format('GRANT USAGE ON SEQUENCE oncebox.conflicts_noted TO %s', who);
END
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA oncebox FROM PUBLIC;
