-- Numbers that pages, metrics and alerts show, kept with the writes so that nothing is scanned for
-- them. A writer appends what it changed; the maintenance leader folds that into the tables below.
-- A counter that every writer updates would have them wait for each other.

-- Which node does what one does for all, and until when unless it says so again.
CREATE TABLE oncebox.leaders (
    until timestamptz NOT NULL,
    duty text PRIMARY KEY,
    holder text NOT NULL
);

-- What statements changed: deliveries that came into a state and that went from one. What is shown
-- is the counts below and what is not folded yet, together.
CREATE TABLE oncebox.delivery_deltas (
    minute integer NOT NULL,
    came integer NOT NULL,
    went integer NOT NULL,
    route smallint NOT NULL,
    state text NOT NULL,
    reason text NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0
);

-- How many deliveries are in a state. The reason is empty where there is none.
CREATE TABLE oncebox.delivery_counts (
    count bigint NOT NULL,
    route smallint NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (route, state, reason)
) WITH (fillfactor = 50);

-- How many deliveries came into a state in a minute or an hour: `span` is its length in minutes,
-- `start` the minute it begins with, counted from 1970.
CREATE TABLE oncebox.delivery_rollups (
    count bigint NOT NULL,
    start integer NOT NULL,
    span smallint NOT NULL CHECK (span IN (1, 60)),
    route smallint NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (span, start, route, state, reason)
);

-- What came in, by source, outcome and type: a row or a few with each batch.
CREATE TABLE oncebox.arrival_deltas (
    minute integer NOT NULL,
    count integer NOT NULL,
    source smallint NOT NULL,
    outcome text NOT NULL,
    event_type text NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0
);

-- The same by minutes and hours. Types beyond limits::ROLLUP_TYPES of a source and hour have none.
CREATE TABLE oncebox.arrival_rollups (
    count bigint NOT NULL,
    start integer NOT NULL,
    span smallint NOT NULL CHECK (span IN (1, 60)),
    source smallint NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('accepted', 'duplicate', 'conflict', 'twin')),
    event_type text NOT NULL,
    PRIMARY KEY (span, start, source, outcome, event_type)
);

-- By triggers, so that no statement and no function of any door can forget it: one call for each
-- statement, however many rows it writes.
CREATE FUNCTION oncebox.count_came() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO oncebox.delivery_deltas (minute, came, went, route, state, reason)
    SELECT
        floor(extract(epoch FROM clock_timestamp()) / 60)::integer, count(*), 0, c.route, c.state,
        coalesce(c.reason, '')
    FROM came AS c
    GROUP BY c.route, c.state, c.reason;
    RETURN NULL;
END
$$;

CREATE FUNCTION oncebox.count_went() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO oncebox.delivery_deltas (minute, came, went, route, state, reason)
    SELECT
        floor(extract(epoch FROM clock_timestamp()) / 60)::integer, 0, count(*), w.route, w.state,
        coalesce(w.reason, '')
    FROM went AS w
    GROUP BY w.route, w.state, w.reason;
    RETURN NULL;
END
$$;

CREATE FUNCTION oncebox.count_moved() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO oncebox.delivery_deltas (minute, came, went, route, state, reason)
    SELECT
        floor(extract(epoch FROM clock_timestamp()) / 60)::integer, greatest(sum(m.n), 0),
        greatest(-sum(m.n), 0), m.route, m.state, coalesce(m.reason, '')
    FROM (
        SELECT 1 AS n, c.route, c.state, c.reason FROM came AS c
        UNION ALL
        SELECT -1, w.route, w.state, w.reason FROM went AS w
    ) AS m
    GROUP BY m.route, m.state, m.reason
    HAVING sum(m.n) <> 0;
    RETURN NULL;
END
$$;

CREATE TRIGGER came AFTER INSERT ON oncebox.deliveries
REFERENCING NEW TABLE AS came
FOR EACH STATEMENT EXECUTE FUNCTION oncebox.count_came();

CREATE TRIGGER moved AFTER UPDATE ON oncebox.deliveries
REFERENCING OLD TABLE AS went NEW TABLE AS came
FOR EACH STATEMENT EXECUTE FUNCTION oncebox.count_moved();

CREATE TRIGGER went AFTER DELETE ON oncebox.deliveries
REFERENCING OLD TABLE AS went
FOR EACH STATEMENT EXECUTE FUNCTION oncebox.count_went();

CREATE TRIGGER came AFTER INSERT ON oncebox.finished
REFERENCING NEW TABLE AS came
FOR EACH STATEMENT EXECUTE FUNCTION oncebox.count_came();

CREATE TRIGGER moved AFTER UPDATE ON oncebox.finished
REFERENCING OLD TABLE AS went NEW TABLE AS came
FOR EACH STATEMENT EXECUTE FUNCTION oncebox.count_moved();

CREATE TRIGGER went AFTER DELETE ON oncebox.finished
REFERENCING OLD TABLE AS went
FOR EACH STATEMENT EXECUTE FUNCTION oncebox.count_went();
