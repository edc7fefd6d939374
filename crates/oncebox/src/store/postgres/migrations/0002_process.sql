-- The name a source or route was born with goes into idempotency keys, so that a rename keeps
-- them.
ALTER TABLE oncebox.sources ADD COLUMN born_as text;
UPDATE oncebox.sources SET born_as = name;
ALTER TABLE oncebox.sources ALTER COLUMN born_as SET NOT NULL;

-- The rules of a route as last configured, so that every node and operator decides alike.
ALTER TABLE oncebox.routes
    ADD COLUMN born_as text,
    ADD COLUMN paused_at timestamptz,
    ADD COLUMN base_ms bigint NOT NULL DEFAULT 1000 CHECK (base_ms > 0),
    ADD COLUMN cap_ms bigint NOT NULL DEFAULT 3600000 CHECK (cap_ms > 0),
    ADD COLUMN longest_wait_ms bigint NOT NULL DEFAULT 604800000 CHECK (longest_wait_ms > 0),
    ADD COLUMN same_operation_ms bigint CHECK (same_operation_ms > 0),
    ADD COLUMN max_attempts integer NOT NULL DEFAULT 8 CHECK (max_attempts > 0),
    ADD COLUMN max_snoozes integer NOT NULL DEFAULT 100 CHECK (max_snoozes >= 0),
    ADD COLUMN ordered boolean NOT NULL DEFAULT false,
    ADD COLUMN skip_stale boolean NOT NULL DEFAULT false,
    ADD COLUMN on_dead text NOT NULL DEFAULT 'hold' CHECK (on_dead IN ('hold', 'continue'));
UPDATE oncebox.routes SET born_as = name;
ALTER TABLE oncebox.routes ALTER COLUMN born_as SET NOT NULL;

-- Open deliveries only: what is finished leaves, so that claims stay flat. `lane` is the object
-- where the route guards it, `place` its place in the lane (the version, or the lowest number).
ALTER TABLE oncebox.deliveries
    ADD COLUMN due_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN lease_until timestamptz,
    ADD COLUMN hastened_at timestamptz,
    ADD COLUMN place bigint NOT NULL DEFAULT -9223372036854775808,
    ADD COLUMN epoch bigint NOT NULL DEFAULT 0,
    ADD COLUMN operation uuid,
    ADD COLUMN source smallint,
    ADD COLUMN failures integer NOT NULL DEFAULT 0,
    ADD COLUMN crashes integer NOT NULL DEFAULT 0,
    ADD COLUMN snoozes integer NOT NULL DEFAULT 0,
    ADD COLUMN replays integer NOT NULL DEFAULT 0,
    -- Whether its last lease ran out: it is claimed alone then.
    ADD COLUMN lost boolean NOT NULL DEFAULT false,
    -- What an operator lets it pass.
    ADD COLUMN ignores_stale boolean NOT NULL DEFAULT false,
    ADD COLUMN ignores_order boolean NOT NULL DEFAULT false,
    ADD COLUMN reason text CHECK (reason IN ('order', 'same-operation', 'unknown-effect')),
    ADD COLUMN lane text,
    ADD COLUMN worker text,
    ADD COLUMN detail text;
UPDATE oncebox.deliveries AS d
SET source = r.source
FROM oncebox.receipts AS r
WHERE r.id = d.receipt;
ALTER TABLE oncebox.deliveries
    ALTER COLUMN source SET NOT NULL,
    ADD CHECK ((state = 'held') = (reason IS NOT NULL)),
    ADD CHECK ((state = 'processing') = (lease_until IS NOT NULL)),
    -- Routes are never removed. Looking for one with every row costs as much as writing it, and
    -- makes all writers lock the same few rows.
    DROP CONSTRAINT deliveries_route_fkey,
    SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX deliveries_due ON oncebox.deliveries (route, due_at, receipt)
    WHERE state IN ('received', 'retrying');
CREATE INDEX deliveries_lost ON oncebox.deliveries (route, due_at, receipt) WHERE lost;
CREATE INDEX deliveries_leased ON oncebox.deliveries (lease_until)
    WHERE state = 'processing' AND lease_until IS NOT NULL;
CREATE INDEX deliveries_lane ON oncebox.deliveries (route, source, lane, place, receipt)
    WHERE lane IS NOT NULL;
-- Collated apart, so that no other index fits where a lease is looked for: a lane may be long.
CREATE INDEX deliveries_lane_leased ON oncebox.deliveries (route, source, lane COLLATE "C")
    WHERE lane IS NOT NULL AND state = 'processing';
CREATE INDEX deliveries_operation ON oncebox.deliveries (route, operation, receipt)
    WHERE operation IS NOT NULL;
CREATE INDEX deliveries_dead ON oncebox.deliveries (route, receipt) WHERE state = 'dead';
CREATE INDEX deliveries_held ON oncebox.deliveries (route, receipt) WHERE state = 'held';

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
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.1
);

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
);

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

CREATE TABLE oncebox.replays (
    id uuid PRIMARY KEY,
    created_at timestamptz NOT NULL,
    lease_until timestamptz,
    epoch bigint NOT NULL DEFAULT 0,
    planned bigint NOT NULL,
    opened bigint NOT NULL DEFAULT 0,
    passed bigint NOT NULL DEFAULT 0,
    cursor_receipt uuid,
    cursor_route smallint,
    rate integer CHECK (rate > 0),
    force boolean NOT NULL,
    ignore_stale boolean NOT NULL,
    unrouted boolean NOT NULL,
    since timestamptz,
    until timestamptz,
    receipts uuid[] NOT NULL,
    routes smallint[] NOT NULL,
    source text,
    event_type text,
    state text,
    -- As `Fill::encode` writes it.
    fill text NOT NULL,
    phase text NOT NULL CHECK (phase IN ('running', 'done', 'cancelled')),
    who text NOT NULL,
    why text
);

-- Only hashes: the secret half is shown once, when a token is made.
CREATE TABLE oncebox.tokens (
    id text PRIMARY KEY,
    name text NOT NULL,
    hash bytea NOT NULL CHECK (octet_length(hash) = 32),
    scopes text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz
);

-- What operators did, through whichever door.
CREATE TABLE oncebox.audit (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    who text NOT NULL,
    via text NOT NULL,
    act text NOT NULL,
    subject text NOT NULL,
    why text
);
