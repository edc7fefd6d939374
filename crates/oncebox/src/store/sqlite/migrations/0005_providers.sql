-- Requests that carried several events. The whole body is what their signature is over, and is
-- kept once. The bytes of each event are in its receipt as well, so that claims, pushes and lists
-- are as fast as for any other event: they never come here. The id is the one minted for the
-- first of the events.
CREATE TABLE requests (
    head INTEGER PRIMARY KEY,
    tail INTEGER NOT NULL,
    source INTEGER NOT NULL,
    events INTEGER NOT NULL CHECK (events > 0),
    body BLOB NOT NULL
) STRICT;

-- The request an event came in together with others, and its place there.
ALTER TABLE receipts ADD COLUMN request INTEGER;
ALTER TABLE receipts ADD COLUMN position INTEGER;

-- Says whether the last event of a request has gone. A count in the request would write its whole
-- body anew for each. Events that came alone are not in it.
CREATE INDEX receipts_request ON receipts (request) WHERE request IS NOT NULL;

-- Windows in which a source takes a secret from its provider, one of each source.
CREATE TABLE pairings (
    source INTEGER PRIMARY KEY REFERENCES sources (no),
    -- The last number that a secret was given.
    last INTEGER NOT NULL DEFAULT 0 CHECK (last BETWEEN 0 AND 32767),
    -- None while there is no window.
    opened_at INTEGER,
    until INTEGER,
    -- The secret that has closed the window.
    paired INTEGER,
    CHECK ((opened_at IS NULL) = (until IS NULL)),
    CHECK (paired IS NULL OR until IS NOT NULL)
) STRICT;

-- Secrets that came in a handshake, sealed. The mark tells one from another without opening it.
CREATE TABLE paired_secrets (
    source INTEGER NOT NULL REFERENCES sources (no),
    no INTEGER NOT NULL CHECK (no BETWEEN 1 AND 32767),
    mark BLOB NOT NULL CHECK (length(mark) = 16),
    fingerprint TEXT NOT NULL,
    paired_at INTEGER NOT NULL,
    sealed BLOB NOT NULL CHECK (length(sealed) BETWEEN 1 AND 8192),
    PRIMARY KEY (source, no),
    UNIQUE (source, mark)
) STRICT, WITHOUT ROWID;
