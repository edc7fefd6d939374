-- Open deliveries only: what is finished leaves, so that claims stay flat. `lane` is the object
-- where the route guards it, `place` its place in the lane (the version, or the lowest number).
CREATE TABLE deliveries (
    receipt INTEGER NOT NULL,
    route INTEGER NOT NULL REFERENCES routes (no),
    source INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (
        state = 'received' OR state = 'processing' OR state = 'retrying' OR state = 'dead'
        OR state = 'held'
    ),
    reason TEXT CHECK (
        reason = 'order' OR reason = 'same-operation' OR reason = 'unknown-effect'
        OR reason = 'twin' OR reason = 'conflict' OR reason = 'damaged'
    ),
    created_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    lease_until INTEGER,
    hastened_at INTEGER,
    -- When it failed first and last since it was recorded or replayed.
    retrying_since INTEGER,
    failed_at INTEGER,
    -- How long it has been tried: attempts that failed, and the pauses after them.
    tried_ms INTEGER NOT NULL DEFAULT 0,
    epoch INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    snoozes INTEGER NOT NULL DEFAULT 0,
    replays INTEGER NOT NULL DEFAULT 0,
    -- How much it is suspected of killing its workers: not at all; 1 and 2 if it lost its lease
    -- together with others; 3 if it is claimed alone. See delivery/suspicion.rs.
    lost INTEGER NOT NULL DEFAULT 0 CHECK (lost BETWEEN 0 AND 3),
    -- What an operator lets it pass.
    ignores_stale INTEGER NOT NULL DEFAULT 0,
    ignores_order INTEGER NOT NULL DEFAULT 0,
    lane TEXT,
    place INTEGER NOT NULL DEFAULT -9223372036854775808,
    operation BLOB CHECK (length(operation) = 16),
    worker TEXT,
    detail TEXT,
    -- The effect it is held for.
    effect TEXT,
    PRIMARY KEY (receipt, route),
    CHECK ((state = 'held') = (reason IS NOT NULL)),
    CHECK ((state = 'processing') = (lease_until IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX deliveries_due ON deliveries (route, lost, due_at)
    WHERE state IN ('received', 'retrying');
CREATE INDEX deliveries_leased ON deliveries (lease_until) WHERE state = 'processing';
CREATE INDEX deliveries_lane ON deliveries (route, source, lane, place, receipt)
    WHERE lane IS NOT NULL;
CREATE INDEX deliveries_lane_leased ON deliveries (route, source, lane)
    WHERE lane IS NOT NULL AND state = 'processing';
CREATE INDEX deliveries_lane_held ON deliveries (route, source, lane, place, receipt)
    WHERE reason = 'order';
CREATE INDEX deliveries_lane_passing ON deliveries (route, source, lane)
    WHERE ignores_order AND reason = 'order';
CREATE INDEX deliveries_operation ON deliveries (route, operation, receipt)
    WHERE operation IS NOT NULL;
-- The first row of each is the oldest in its state. What is under a lease is few, and is looked
-- through by `deliveries_leased`: an index more could be taken where a lane is looked for.
CREATE INDEX deliveries_received ON deliveries (route, receipt) WHERE state = 'received';
CREATE INDEX deliveries_retrying ON deliveries (route, receipt) WHERE state = 'retrying';
CREATE INDEX deliveries_dead ON deliveries (route, receipt) WHERE state = 'dead';
CREATE INDEX deliveries_held ON deliveries (route, receipt) WHERE state = 'held';
CREATE INDEX deliveries_effect ON deliveries (effect) WHERE effect IS NOT NULL;

-- Deliveries that are over. The last attempt is told here; those before it are in `attempts`.
CREATE TABLE finished (
    receipt INTEGER NOT NULL,
    route INTEGER NOT NULL REFERENCES routes (no),
    source INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('processed', 'skipped')),
    reason TEXT CHECK (
        reason = 'stale' OR reason = 'same-operation' OR reason = 'discarded'
    ),
    created_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    snoozes INTEGER NOT NULL,
    replays INTEGER NOT NULL,
    laned INTEGER NOT NULL,
    operation BLOB,
    first_head INTEGER,
    first_tail INTEGER,
    status INTEGER,
    took_ms INTEGER,
    detail TEXT,
    summary TEXT,
    PRIMARY KEY (receipt, route),
    CHECK ((state = 'skipped') = (reason IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX finished_skipped ON finished (route, receipt) WHERE state = 'skipped';
CREATE INDEX finished_operation ON finished (route, operation, created_at)
    WHERE state = 'processed' AND operation IS NOT NULL;

-- Attempts that did not finish their delivery, and those that finished it before it was replayed.
CREATE TABLE attempts (
    receipt INTEGER NOT NULL,
    route INTEGER NOT NULL REFERENCES routes (no),
    epoch INTEGER NOT NULL,
    number INTEGER NOT NULL,
    replays INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    took_ms INTEGER,
    outcome TEXT NOT NULL CHECK (
        outcome = 'processed' OR outcome = 'stale' OR outcome = 'retry' OR outcome = 'snooze'
        OR outcome = 'dead' OR outcome = 'lost'
    ),
    status INTEGER,
    detail TEXT,
    PRIMARY KEY (receipt, route, epoch)
) STRICT, WITHOUT ROWID;

-- What was last processed of an object on a route.
CREATE TABLE lanes (
    route INTEGER NOT NULL,
    source INTEGER NOT NULL,
    object TEXT NOT NULL,
    applied INTEGER,
    touched INTEGER NOT NULL,
    PRIMARY KEY (route, source, object)
) STRICT, WITHOUT ROWID;

-- The newest that was processed of an operation on a route, for when its event is gone.
CREATE TABLE operations (
    route INTEGER NOT NULL,
    key BLOB NOT NULL CHECK (length(key) = 16),
    head INTEGER,
    tail INTEGER,
    received_at INTEGER,
    touched INTEGER NOT NULL,
    PRIMARY KEY (route, key)
) STRICT, WITHOUT ROWID;
