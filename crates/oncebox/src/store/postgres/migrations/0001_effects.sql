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

-- Who began an effect and gave no answer before somebody else took it over, or a person said what
-- came of it: a row for each lease. What one of those says later is evidence, and what anybody else
-- says is not. It outlives the effect: a person who says that it did not happen may be wrong.
CREATE TABLE oncebox.unanswered (
    receipt uuid NOT NULL,
    epoch bigint NOT NULL,
    at timestamptz NOT NULL,
    attempt integer NOT NULL,
    route smallint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('once', 'step')),
    key text COLLATE "C" NOT NULL,
    PRIMARY KEY (key, receipt, route, epoch)
);

-- Deliveries that found an effect done by another: a row each, so that nobody waits for a counter.
CREATE TABLE oncebox.effect_conflicts (
    receipt uuid NOT NULL,
    at timestamptz NOT NULL,
    route smallint NOT NULL,
    differs boolean NOT NULL,
    key text COLLATE "C" NOT NULL REFERENCES oncebox.effects (key) ON DELETE CASCADE,
    PRIMARY KEY (key, receipt, route)
);

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

-- Where each group of outbox messages has come to. `send` locks the row until it commits, so
-- numbers are in the order of commits.
CREATE TABLE oncebox.outbox_groups (
    last bigint NOT NULL,
    touched integer NOT NULL,
    route smallint NOT NULL,
    name text NOT NULL,
    PRIMARY KEY (route, name)
);
