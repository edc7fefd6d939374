-- The name a source or route was born with goes into idempotency keys, so that a rename keeps
-- them.
ALTER TABLE sources ADD COLUMN born_as TEXT NOT NULL DEFAULT '';
UPDATE sources SET born_as = name;

-- The rules of a route as last configured, so that servers and operators decide alike.
ALTER TABLE routes ADD COLUMN born_as TEXT NOT NULL DEFAULT '';
ALTER TABLE routes ADD COLUMN paused_at INTEGER;
ALTER TABLE routes ADD COLUMN base_ms INTEGER NOT NULL DEFAULT 1000 CHECK (base_ms > 0);
ALTER TABLE routes ADD COLUMN cap_ms INTEGER NOT NULL DEFAULT 3600000 CHECK (cap_ms > 0);
ALTER TABLE routes ADD COLUMN
    longest_wait_ms INTEGER NOT NULL DEFAULT 604800000 CHECK (longest_wait_ms > 0);
ALTER TABLE routes ADD COLUMN same_operation_ms INTEGER CHECK (same_operation_ms > 0);
ALTER TABLE routes ADD COLUMN max_attempts INTEGER NOT NULL DEFAULT 8 CHECK (max_attempts > 0);
ALTER TABLE routes ADD COLUMN max_snoozes INTEGER NOT NULL DEFAULT 100 CHECK (max_snoozes >= 0);
ALTER TABLE routes ADD COLUMN ordered INTEGER NOT NULL DEFAULT 0;
ALTER TABLE routes ADD COLUMN skip_stale INTEGER NOT NULL DEFAULT 0;
ALTER TABLE routes ADD COLUMN
    on_dead TEXT NOT NULL DEFAULT 'hold' CHECK (on_dead IN ('hold', 'continue'));
UPDATE routes SET born_as = name;

-- Open deliveries only: what is finished leaves, so that claims stay flat. `lane` is the object
-- where the route guards it, `place` its place in the lane (the version, or the lowest number).
CREATE TABLE open_deliveries (
    receipt INTEGER NOT NULL,
    route INTEGER NOT NULL REFERENCES routes (no),
    source INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (
        state IN ('received', 'processing', 'retrying', 'dead', 'held')
    ),
    reason TEXT CHECK (reason IN ('order', 'same-operation', 'unknown-effect')),
    created_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    lease_until INTEGER,
    hastened_at INTEGER,
    epoch INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    snoozes INTEGER NOT NULL DEFAULT 0,
    replays INTEGER NOT NULL DEFAULT 0,
    -- Whether its last lease ran out: it is claimed alone then.
    lost INTEGER NOT NULL DEFAULT 0,
    -- What an operator lets it pass.
    ignores_stale INTEGER NOT NULL DEFAULT 0,
    ignores_order INTEGER NOT NULL DEFAULT 0,
    lane TEXT,
    place INTEGER NOT NULL DEFAULT -9223372036854775808,
    operation BLOB CHECK (length(operation) = 16),
    worker TEXT,
    detail TEXT,
    PRIMARY KEY (receipt, route),
    CHECK ((state = 'held') = (reason IS NOT NULL)),
    CHECK ((state = 'processing') = (lease_until IS NOT NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO open_deliveries (receipt, route, source, state, created_at, due_at, attempts)
SELECT d.receipt, d.route, r.source, d.state, d.created_at, d.created_at, d.attempts
FROM deliveries AS d
JOIN receipts AS r ON r.head = d.receipt;
DROP TABLE deliveries;
ALTER TABLE open_deliveries RENAME TO deliveries;

CREATE INDEX deliveries_due ON deliveries (route, due_at) WHERE state IN ('received', 'retrying');
CREATE INDEX deliveries_lost ON deliveries (route, due_at)
    WHERE lost AND state IN ('received', 'retrying');
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
CREATE INDEX deliveries_dead ON deliveries (route, receipt) WHERE state = 'dead';
CREATE INDEX deliveries_held ON deliveries (route, receipt) WHERE state = 'held';

-- Deliveries that are over. The last attempt is told here; those before it are in `attempts`.
CREATE TABLE finished (
    receipt INTEGER NOT NULL,
    route INTEGER NOT NULL REFERENCES routes (no),
    source INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('processed', 'skipped')),
    reason TEXT CHECK (reason IN ('stale', 'same-operation', 'discarded')),
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
        outcome IN ('processed', 'stale', 'retry', 'snooze', 'dead', 'lost')
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

-- `receipts` and `routes` are lists: sixteen and two bytes each, one after the other.
CREATE TABLE replays (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    created_at INTEGER NOT NULL,
    who TEXT NOT NULL,
    why TEXT,
    receipts BLOB NOT NULL,
    routes BLOB NOT NULL,
    source TEXT,
    event_type TEXT,
    since INTEGER,
    until INTEGER,
    state TEXT,
    unrouted INTEGER NOT NULL,
    -- As `Fill::encode` writes it.
    fill TEXT NOT NULL,
    force INTEGER NOT NULL,
    ignore_stale INTEGER NOT NULL,
    rate INTEGER CHECK (rate > 0),
    phase TEXT NOT NULL CHECK (phase IN ('running', 'done', 'cancelled')),
    planned INTEGER NOT NULL,
    opened INTEGER NOT NULL DEFAULT 0,
    passed INTEGER NOT NULL DEFAULT 0,
    cursor_head INTEGER,
    cursor_tail INTEGER,
    cursor_route INTEGER,
    epoch INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER
) STRICT;

-- Only hashes: the secret half is shown once, when a token is made.
CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;

-- What operators did, through whichever door.
CREATE TABLE audit (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    who TEXT NOT NULL,
    via TEXT NOT NULL,
    act TEXT NOT NULL,
    subject TEXT NOT NULL,
    why TEXT
) STRICT;
