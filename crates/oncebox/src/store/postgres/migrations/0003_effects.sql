-- The ledger: what happened once, and who did it. A key is taken by inserting it, so the unique
-- index decides, and waits for whoever has not committed yet. Fixed widths come first.
CREATE TABLE oncebox.effects (
    -- Who did it, or was at it last: a delivery, under a lease, on an attempt.
    receipt uuid NOT NULL,
    epoch bigint NOT NULL,
    -- Since when it is in its state.
    at timestamptz NOT NULL,
    evidence_at timestamptz,
    -- The payload of a message.
    digest uuid,
    attempt integer NOT NULL,
    -- How often it was begun without an answer.
    unknowns integer NOT NULL DEFAULT 0,
    route smallint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('once', 'step', 'message')),
    state text NOT NULL CHECK (state IN ('started', 'done', 'unknown')),
    -- A step's key is longer than what its caller named. Lists go by the bytes.
    key text COLLATE "C" NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 1024),
    result text CHECK (octet_length(result) <= 16384),
    evidence text CHECK (octet_length(evidence) <= 16384),
    PRIMARY KEY (key)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.1
);

CREATE INDEX effects_owner ON oncebox.effects (receipt, route);
CREATE INDEX effects_open ON oncebox.effects (state, at) WHERE state <> 'done';

-- Deliveries that found an effect done by another: a row each, so that nobody waits for a counter.
CREATE TABLE oncebox.effect_conflicts (
    receipt uuid NOT NULL,
    at timestamptz NOT NULL,
    route smallint NOT NULL,
    differs boolean NOT NULL,
    key text COLLATE "C" NOT NULL REFERENCES oncebox.effects (key) ON DELETE CASCADE,
    PRIMARY KEY (key, receipt, route)
);

-- Where each group of outbox messages has come to. `send` locks the row until it commits, so
-- numbers are in the order of commits.
CREATE TABLE oncebox.outbox_groups (
    last bigint NOT NULL,
    touched integer NOT NULL,
    route smallint NOT NULL,
    name text NOT NULL,
    PRIMARY KEY (route, name)
);

-- Whether workers elsewhere take from a route. One that they do not take from is pushed.
ALTER TABLE oncebox.routes ADD COLUMN pulled boolean NOT NULL DEFAULT true;

ALTER TABLE oncebox.deliveries
    -- The transaction that claimed it through SQL: what is claimed must be committed before work
    -- on it begins.
    ADD COLUMN claimed_in xid8,
    -- The effect it is held for.
    ADD COLUMN effect text;

CREATE INDEX deliveries_effect ON oncebox.deliveries (effect) WHERE effect IS NOT NULL;
