-- Open deliveries only: what is finished leaves, so that claims stay flat. `lane` is the object
-- where the route guards it, `place` its place in the lane (the version, or the lowest number).
-- Routes are never removed, so that nothing has to refer to them: looking for one with every row
-- costs as much as writing it, and makes all writers lock the same few rows.
CREATE TABLE oncebox.deliveries (
    receipt uuid NOT NULL,
    created_at timestamptz NOT NULL,
    due_at timestamptz NOT NULL DEFAULT now(),
    lease_until timestamptz,
    hastened_at timestamptz,
    -- When it failed first and last since it was recorded or replayed.
    retrying_since timestamptz,
    failed_at timestamptz,
    -- How long it has been tried: attempts that failed, and the pauses after them.
    tried_ms bigint NOT NULL DEFAULT 0,
    place bigint NOT NULL DEFAULT -9223372036854775808,
    epoch bigint NOT NULL DEFAULT 0,
    -- The transaction that claimed it through SQL: what is claimed must be committed before work
    -- on it begins.
    claimed_in xid8,
    operation uuid,
    attempts integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    snoozes integer NOT NULL DEFAULT 0,
    replays integer NOT NULL DEFAULT 0,
    route smallint NOT NULL,
    source smallint NOT NULL,
    -- How much it is suspected of killing its workers: not at all; 1 and 2 if it lost its lease
    -- together with others; 3 if it is claimed alone. See delivery/suspicion.rs.
    lost smallint NOT NULL DEFAULT 0 CHECK (lost BETWEEN 0 AND 3),
    -- What an operator lets it pass.
    ignores_stale boolean NOT NULL DEFAULT false,
    ignores_order boolean NOT NULL DEFAULT false,
    state text NOT NULL CHECK (
        state IN ('received', 'processing', 'retrying', 'dead', 'held')
    ),
    reason text CHECK (
        reason IN ('order', 'same-operation', 'unknown-effect', 'twin', 'conflict', 'damaged')
    ),
    lane text,
    worker text,
    detail text,
    -- The effect it is held for.
    effect text,
    PRIMARY KEY (receipt, route),
    CHECK ((state = 'held') = (reason IS NOT NULL)),
    CHECK ((state = 'processing') = (lease_until IS NOT NULL))
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 0
);

CREATE INDEX deliveries_due ON oncebox.deliveries (route, due_at, receipt)
    WHERE state IN ('received', 'retrying');
CREATE INDEX deliveries_lost ON oncebox.deliveries (route, lost, due_at, receipt) WHERE lost > 0;
CREATE INDEX deliveries_leased ON oncebox.deliveries (lease_until)
    WHERE state = 'processing' AND lease_until IS NOT NULL;
CREATE INDEX deliveries_lane ON oncebox.deliveries (route, source, lane, place, receipt)
    WHERE lane IS NOT NULL;
-- Collated apart, so that no other index fits where a lease is looked for: a lane may be long.
CREATE INDEX deliveries_lane_leased ON oncebox.deliveries (route, source, lane COLLATE "C")
    WHERE lane IS NOT NULL AND state = 'processing';
CREATE INDEX deliveries_operation ON oncebox.deliveries (route, operation, receipt)
    WHERE operation IS NOT NULL;
-- The first row of each is the oldest in its state. What is under a lease is few, and is looked
-- through by `deliveries_leased`: an index more could be taken where a lane is looked for.
CREATE INDEX deliveries_received ON oncebox.deliveries (route, receipt) WHERE state = 'received';
CREATE INDEX deliveries_retrying ON oncebox.deliveries (route, receipt) WHERE state = 'retrying';
CREATE INDEX deliveries_dead ON oncebox.deliveries (route, receipt) WHERE state = 'dead';
CREATE INDEX deliveries_held ON oncebox.deliveries (route, receipt) WHERE state = 'held';
CREATE INDEX deliveries_effect ON oncebox.deliveries (effect) WHERE effect IS NOT NULL;

-- Deliveries that are over. The last attempt is told here; those before it are in `attempts`.
CREATE TABLE oncebox.finished (
    receipt uuid NOT NULL,
    created_at timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    epoch bigint NOT NULL,
    operation uuid,
    first uuid,
    route smallint NOT NULL,
    source smallint NOT NULL,
    status smallint,
    took_ms integer,
    attempts integer NOT NULL,
    failures integer NOT NULL,
    crashes integer NOT NULL,
    snoozes integer NOT NULL,
    replays integer NOT NULL,
    laned boolean NOT NULL,
    state text NOT NULL CHECK (state IN ('processed', 'skipped')),
    reason text CHECK (reason IN ('stale', 'same-operation', 'discarded')),
    detail text,
    summary text,
    PRIMARY KEY (receipt, route),
    CHECK ((state = 'skipped') = (reason IS NOT NULL))
) PARTITION BY RANGE (receipt);

CREATE INDEX finished_skipped ON oncebox.finished (route, receipt) WHERE state = 'skipped';
CREATE INDEX finished_operation ON oncebox.finished (route, operation, created_at)
    WHERE state = 'processed' AND operation IS NOT NULL;

-- Attempts that did not finish their delivery, and those that finished it before it was replayed.
CREATE TABLE oncebox.attempts (
    receipt uuid NOT NULL,
    ended_at timestamptz NOT NULL,
    epoch bigint NOT NULL,
    route smallint NOT NULL,
    status smallint,
    took_ms integer,
    number integer NOT NULL,
    replays integer NOT NULL,
    outcome text NOT NULL CHECK (
        outcome IN ('processed', 'stale', 'retry', 'snooze', 'dead', 'lost')
    ),
    detail text,
    PRIMARY KEY (receipt, route, epoch)
) PARTITION BY RANGE (receipt);

-- What was last processed of an object on a route, and the row that is locked by whoever holds a
-- delivery back or lets it go.
CREATE TABLE oncebox.lanes (
    applied bigint,
    touched integer NOT NULL,
    route smallint NOT NULL,
    source smallint NOT NULL,
    object text NOT NULL,
    PRIMARY KEY (route, source, object)
);

-- The newest that was processed of an operation on a route, for when its event is gone; locked like
-- a lane.
CREATE TABLE oncebox.operations (
    key uuid NOT NULL,
    receipt uuid,
    received_at timestamptz,
    touched integer NOT NULL,
    route smallint NOT NULL,
    PRIMARY KEY (route, key)
);
