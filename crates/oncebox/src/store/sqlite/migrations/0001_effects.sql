-- The ledger: what happened once, and who did it. A key is taken by inserting it, so the unique
-- index decides.
CREATE TABLE effects (
    key TEXT PRIMARY KEY CHECK (length(CAST(key AS BLOB)) BETWEEN 1 AND 1024),
    kind TEXT NOT NULL CHECK (
        kind = 'once' OR kind = 'step' OR kind = 'message'
    ),
    state TEXT NOT NULL CHECK (
        state = 'started' OR state = 'done' OR state = 'unknown'
    ),
    -- Who did it, or was at it last: a delivery, under a lease, on an attempt. The second half of
    -- the receipt's id is here because effects outlive receipts.
    receipt INTEGER NOT NULL,
    tail INTEGER NOT NULL,
    route INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    -- Since when it is in its state.
    at INTEGER NOT NULL,
    -- How often it was begun without an answer.
    unknowns INTEGER NOT NULL DEFAULT 0,
    -- The payload of a message.
    digest BLOB CHECK (length(digest) = 16),
    result TEXT CHECK (length(CAST(result AS BLOB)) <= 16384),
    evidence_at INTEGER,
    evidence TEXT CHECK (length(CAST(evidence AS BLOB)) <= 16384)
) STRICT, WITHOUT ROWID;

CREATE INDEX effects_owner ON effects (receipt, route);
CREATE INDEX effects_open ON effects (state, at) WHERE state <> 'done';

-- Who began an effect and gave no answer before somebody else took it over, or a person said what
-- came of it: a row for each lease. What one of those says later is evidence, and what anybody else
-- says is not. It outlives the effect: a person who says that it did not happen may be wrong.
CREATE TABLE unanswered (
    key TEXT NOT NULL,
    receipt INTEGER NOT NULL,
    tail INTEGER NOT NULL,
    route INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('once', 'step')),
    at INTEGER NOT NULL,
    PRIMARY KEY (key, receipt, route, epoch)
) STRICT, WITHOUT ROWID;

-- Deliveries that found an effect done by another.
CREATE TABLE effect_conflicts (
    key TEXT NOT NULL REFERENCES effects (key) ON DELETE CASCADE,
    receipt INTEGER NOT NULL,
    tail INTEGER NOT NULL,
    route INTEGER NOT NULL,
    at INTEGER NOT NULL,
    differs INTEGER NOT NULL CHECK (differs IN (0, 1)),
    PRIMARY KEY (key, receipt, route)
) STRICT, WITHOUT ROWID;

-- How many were ever noted: a number that is read at once, however many there are, and that does
-- not fall when some of them expire.
CREATE TRIGGER conflicts_counted AFTER INSERT ON effect_conflicts
BEGIN
    UPDATE marks SET value = value + 1 WHERE name = 'conflicts';
END;

-- Where each group of outbox messages has come to.
CREATE TABLE outbox_groups (
    route INTEGER NOT NULL,
    name TEXT NOT NULL,
    last INTEGER NOT NULL,
    touched INTEGER NOT NULL,
    PRIMARY KEY (route, name)
) STRICT, WITHOUT ROWID;
