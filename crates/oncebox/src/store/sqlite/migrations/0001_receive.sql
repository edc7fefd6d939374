-- Names map to small numbers, so that a rename keeps identities, receipts and keys.
CREATE TABLE sources (
    no INTEGER PRIMARY KEY CHECK (no BETWEEN 1 AND 32767),
    name TEXT NOT NULL UNIQUE,
    -- Bytes of headers and bodies kept; what a quota is compared with.
    stored INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE routes (
    no INTEGER PRIMARY KEY CHECK (no BETWEEN 1 AND 32767),
    name TEXT NOT NULL UNIQUE
) STRICT;

-- Which secrets a source ever had, told apart by a short fingerprint.
CREATE TABLE secrets (
    source INTEGER NOT NULL REFERENCES sources (no),
    no INTEGER NOT NULL CHECK (no BETWEEN 1 AND 32767),
    fingerprint TEXT NOT NULL,
    first_used_at INTEGER NOT NULL,
    PRIMARY KEY (source, no),
    UNIQUE (source, fingerprint)
) STRICT, WITHOUT ROWID;

-- One row per verified event. A receipt id is kept as two integers. The first half grows with
-- time and never repeats, so it is the row's number: a receipt is an append to this one tree,
-- found by id without an index beside it, and other tables name it by that half alone.
CREATE TABLE receipts (
    head INTEGER PRIMARY KEY,
    tail INTEGER NOT NULL,
    source INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    event_id TEXT NOT NULL CHECK (length(event_id) > 0),
    trust TEXT NOT NULL CHECK (trust IN ('signed', 'transport', 'digest')),
    event_type TEXT NOT NULL,
    object TEXT,
    version INTEGER,
    secret INTEGER NOT NULL,
    signed_at INTEGER,
    routes INTEGER NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    headers BLOB NOT NULL,
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

-- Open deliveries only: what is finished leaves, so that claims stay flat.
CREATE TABLE deliveries (
    receipt INTEGER NOT NULL,
    route INTEGER NOT NULL REFERENCES routes (no),
    state TEXT NOT NULL CHECK (
        state IN ('received', 'processing', 'retrying', 'dead', 'held')
    ),
    attempts INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (receipt, route)
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
    UNIQUE (receipt, oddity, content, event_id)
) STRICT;

-- Written when a batch holds only repeats: their answer, too, must follow a synced commit.
CREATE TABLE marks (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO marks (name, value) VALUES ('repeats', 0);
