-- One row per event; one that nobody verified (a capture) is marked so. A receipt id is kept as two
-- integers. The first half grows with time and never repeats, so it is the row's number: a receipt
-- is an append to this one tree, found by id without an index beside it, and other tables name it
-- by that half alone.
CREATE TABLE receipts (
    head INTEGER PRIMARY KEY,
    tail INTEGER NOT NULL,
    source INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    event_id TEXT NOT NULL CHECK (length(event_id) > 0),
    trust TEXT NOT NULL CHECK (trust IN ('signed', 'transport', 'digest', 'unverified')),
    event_type TEXT NOT NULL,
    object TEXT,
    version INTEGER,
    secret INTEGER NOT NULL,
    signed_at INTEGER,
    routes INTEGER NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    headers BLOB NOT NULL,
    body BLOB NOT NULL,
    -- The request it came in together with others, and its place there.
    request INTEGER,
    position INTEGER
) STRICT;

-- Says whether the last event of a request has gone. A count in the request would write its whole
-- body anew for each. Events that came alone are not in it.
CREATE INDEX receipts_request ON receipts (request) WHERE request IS NOT NULL;

-- Requests that carried several events. The whole body is what their signature is over, and is
-- kept once. The bytes of each event are in its receipt as well, so that claims, pushes and lists
-- are as fast as for any other event: they never come here. The id is the one minted for the
-- first of the events.
CREATE TABLE requests (
    head INTEGER PRIMARY KEY,
    tail INTEGER NOT NULL,
    source INTEGER NOT NULL,
    events INTEGER NOT NULL CHECK (events > 0),
    -- Whether its bytes count against the quota of its source. As long as it is there only for what
    -- was kept aside they do not, like those of any odd arrival.
    counted INTEGER NOT NULL DEFAULT 1,
    body BLOB NOT NULL
) STRICT;

-- The memory of identities. It outlives the payloads, so it is kept apart and compact.
CREATE TABLE identities (
    source INTEGER NOT NULL,
    key BLOB NOT NULL CHECK (length(key) = 16),
    head INTEGER NOT NULL,
    tail INTEGER NOT NULL,
    content BLOB NOT NULL CHECK (length(content) = 16),
    last_seen INTEGER NOT NULL,
    PRIMARY KEY (source, key)
) STRICT, WITHOUT ROWID;

-- Repeated deliveries of a receipt, counted. They go with it.
CREATE TABLE repeats (
    receipt INTEGER PRIMARY KEY REFERENCES receipts (head) ON DELETE CASCADE,
    duplicates INTEGER NOT NULL,
    conflicts INTEGER NOT NULL,
    twins INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL
) STRICT;

-- Authentic arrivals that are neither new nor plain repeats, kept aside for a person to judge.
CREATE TABLE odd_arrivals (
    head INTEGER PRIMARY KEY,
    tail INTEGER NOT NULL,
    receipt INTEGER NOT NULL REFERENCES receipts (head) ON DELETE CASCADE,
    source INTEGER NOT NULL,
    oddity TEXT NOT NULL CHECK (oddity IN ('conflict', 'twin')),
    event_id TEXT NOT NULL,
    content BLOB NOT NULL CHECK (length(content) = 16),
    received_at INTEGER NOT NULL,
    headers BLOB NOT NULL,
    body BLOB NOT NULL,
    -- As in receipts: what such an event is, and whether it is genuine, only the whole can tell.
    request INTEGER,
    position INTEGER,
    UNIQUE (receipt, oddity, content, event_id)
) STRICT;

-- Says, together with that of the receipts, whether the last event of a request has gone.
CREATE INDEX odd_arrivals_request ON odd_arrivals (request) WHERE request IS NOT NULL;

-- Counters. The first is written when a batch holds only repeats: their answer, too, must follow a
-- synced commit. The second says how many conflicts of effects were ever noted.
CREATE TABLE marks (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO marks (name, value) VALUES ('repeats', 0), ('conflicts', 0);
