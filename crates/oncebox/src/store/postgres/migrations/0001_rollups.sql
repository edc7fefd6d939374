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
