-- Numbers that pages, metrics and alerts show, kept with the writes so that nothing is scanned for
-- them.

-- How many deliveries are in a state, how many ever came into it, and how many of those are in
-- `delivery_rollups`. The reason is empty where there is none.
CREATE TABLE delivery_counts (
    route INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    count INTEGER NOT NULL,
    came INTEGER NOT NULL DEFAULT 0,
    folded INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (route, state, reason)
) STRICT, WITHOUT ROWID;

-- How many deliveries came into a state in a minute or an hour: `span` is its length in minutes,
-- `start` the minute it begins with, counted from 1970.
CREATE TABLE delivery_rollups (
    span INTEGER NOT NULL CHECK (span IN (1, 60)),
    start INTEGER NOT NULL,
    route INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (span, start, route, state, reason)
) STRICT, WITHOUT ROWID;

-- What came in, by source, outcome and type: a row or a few with each batch, until it is folded.
CREATE TABLE arrival_deltas (
    minute INTEGER NOT NULL,
    source INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    event_type TEXT NOT NULL,
    count INTEGER NOT NULL
) STRICT;

-- The same by minutes and hours. Types beyond limits::ROLLUP_TYPES of a source and hour have none.
CREATE TABLE arrival_rollups (
    span INTEGER NOT NULL CHECK (span IN (1, 60)),
    start INTEGER NOT NULL,
    source INTEGER NOT NULL,
    outcome TEXT NOT NULL CHECK (
        outcome = 'accepted' OR outcome = 'duplicate' OR outcome = 'conflict'
        OR outcome = 'twin'
    ),
    event_type TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (span, start, source, outcome, event_type)
) STRICT, WITHOUT ROWID;
