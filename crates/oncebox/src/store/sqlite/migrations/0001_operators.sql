-- Jobs that replay what a filter finds. A job outlives the process that drives it. `receipts` and
-- `routes` are lists: sixteen and two bytes each, one after the other.
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
    odd INTEGER NOT NULL,
    -- As `Fill::encode` writes it.
    fill TEXT NOT NULL,
    force INTEGER NOT NULL,
    ignore_stale INTEGER NOT NULL,
    rate INTEGER CHECK (rate > 0),
    phase TEXT NOT NULL CHECK (
        phase = 'running' OR phase = 'done' OR phase = 'cancelled'
    ),
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

-- Requests that were rejected, of sources that ask to keep some. Nothing in them is verified:
-- they are never delivered, and gone after a day.
CREATE TABLE rejected (
    head INTEGER PRIMARY KEY,
    tail INTEGER NOT NULL,
    source INTEGER NOT NULL REFERENCES sources (no),
    received_at INTEGER NOT NULL,
    reason TEXT NOT NULL,
    hint TEXT,
    sender TEXT NOT NULL,
    method TEXT NOT NULL,
    url TEXT NOT NULL,
    -- How long the body was; at most its beginning is kept.
    body_bytes INTEGER NOT NULL,
    headers BLOB NOT NULL,
    body BLOB NOT NULL CHECK (length(body) <= 65536)
) STRICT;

CREATE INDEX rejected_by_reason ON rejected (source, reason, head);

-- Until when the server writes down what it does, for `oncebox tail`.
CREATE TABLE watches (
    name TEXT PRIMARY KEY,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What the server did while an `oncebox tail` ran, kept for a minute.
CREATE TABLE happenings (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    line TEXT NOT NULL
) STRICT;
