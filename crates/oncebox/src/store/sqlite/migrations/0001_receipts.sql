-- One row per event; one that nobody verified (a capture) is marked so. A receipt id is kept as two
-- integers. The first half grows with time and never repeats, so it is the row's number: a receipt
-- is an append to this one tree, found by id without an index beside it, and other tables name it
-- by that half alone.
-- Words are compared one by one: for `IN` with three or more, SQLite fills a table at every write.
CREATE TABLE receipts (
    head INTEGER PRIMARY KEY,
    tail INTEGER NOT NULL,
    source INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    event_id TEXT NOT NULL CHECK (length(event_id) > 0),
    trust TEXT NOT NULL CHECK (
        trust = 'signed' OR trust = 'transport' OR trust = 'digest' OR trust = 'unverified'
    ),
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
    position INTEGER,
    -- What is odd about it, and the receipt that came first with its content or its identity.
    oddity TEXT CHECK (
        oddity = 'twin' OR oddity = 'conflict' OR oddity = 'defect'
    ),
    first_head INTEGER,
    first_tail INTEGER,
    CHECK ((first_head IS NOT NULL) = (oddity IS NOT NULL AND oddity <> 'defect'))
) STRICT;

-- The twins and conflicts of a receipt. Other receipts are not in it.
CREATE INDEX receipts_first ON receipts (first_head) WHERE first_head IS NOT NULL;

-- Odd receipts by their event id: that of a twin is in no identity.
CREATE INDEX receipts_odd ON receipts (event_id) WHERE oddity IS NOT NULL;

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

-- Signed content that must not come in unmarked under another, unsigned id: which receipt came
-- first with it, and the key of that event's identity. The key is that of the content; where one
-- body comes under several types, each further type has a row of its own (its key holds the type),
-- and `type` is the key of the first one.
CREATE TABLE guards (
    source INTEGER NOT NULL,
    key BLOB NOT NULL CHECK (length(key) = 16),
    head INTEGER NOT NULL,
    tail INTEGER NOT NULL,
    identity BLOB NOT NULL CHECK (length(identity) = 16),
    type BLOB NOT NULL CHECK (length(type) = 16),
    last_seen INTEGER NOT NULL,
    -- Twins of this content that were held, and types it came under beside the first.
    held INTEGER NOT NULL DEFAULT 0,
    types INTEGER NOT NULL DEFAULT 0,
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

-- Counters. The first is written when a batch holds only repeats: their answer, too, must follow a
-- synced commit. The second says how many conflicts of effects were ever noted.
CREATE TABLE marks (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO marks (name, value) VALUES ('repeats', 0), ('conflicts', 0);
