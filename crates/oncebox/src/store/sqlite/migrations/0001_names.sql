-- Names map to small numbers, so that a rename keeps identities, receipts and keys.
CREATE TABLE sources (
    no INTEGER PRIMARY KEY CHECK (no BETWEEN 1 AND 32767),
    name TEXT NOT NULL UNIQUE,
    -- The name it was born with goes into idempotency keys, so that a rename keeps them.
    born_as TEXT NOT NULL,
    -- Bytes of headers and bodies kept; what a quota is compared with.
    stored INTEGER NOT NULL DEFAULT 0,
    -- Whether a request was proved in the strongest way of its provider, so that it is required.
    proved_strongest INTEGER NOT NULL DEFAULT 0 CHECK (proved_strongest IN (0, 1))
) STRICT;

-- How long a source keeps what it received, as the server that had it configured last told.
CREATE TABLE source_windows (
    source INTEGER PRIMARY KEY REFERENCES sources (no),
    payloads_s INTEGER NOT NULL,
    identities_s INTEGER NOT NULL
) STRICT;

-- The rules of a route as last configured, so that servers and operators decide alike.
CREATE TABLE routes (
    no INTEGER PRIMARY KEY CHECK (no BETWEEN 1 AND 32767),
    name TEXT NOT NULL UNIQUE,
    -- As that of a source.
    born_as TEXT NOT NULL,
    -- The service whose workers it has: keys of effects are told apart by it. NULL until told,
    -- empty for the service without a name.
    service TEXT,
    -- After the route came to guard objects: the last receipt whose open delivery was given its
    -- object. Nothing is claimed until all have theirs.
    fill_after INTEGER,
    paused_at INTEGER,
    base_ms INTEGER NOT NULL DEFAULT 5000 CHECK (base_ms > 0),
    cap_ms INTEGER NOT NULL DEFAULT 43200000 CHECK (cap_ms > 0),
    budget_ms INTEGER CHECK (budget_ms > 0),
    hold_for_ms INTEGER NOT NULL DEFAULT 3600000 CHECK (hold_for_ms >= 0),
    longest_wait_ms INTEGER NOT NULL DEFAULT 604800000 CHECK (longest_wait_ms > 0),
    same_operation_ms INTEGER CHECK (same_operation_ms > 0),
    max_attempts INTEGER NOT NULL DEFAULT 15 CHECK (max_attempts > 0),
    max_snoozes INTEGER NOT NULL DEFAULT 100 CHECK (max_snoozes >= 0),
    ordered INTEGER NOT NULL DEFAULT 0,
    skip_stale INTEGER NOT NULL DEFAULT 0,
    -- Whether workers elsewhere take from it. One that they do not take from is pushed.
    pulled INTEGER NOT NULL DEFAULT 1 CHECK (pulled IN (0, 1)),
    on_dead TEXT NOT NULL DEFAULT 'hold' CHECK (on_dead IN ('hold', 'continue'))
) STRICT;

-- Breakers that are not closed, as workers tell. Operators see them; nothing is decided by them.
CREATE TABLE breakers (
    worker TEXT NOT NULL,
    route INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    next_probe_at INTEGER,
    told_at INTEGER NOT NULL,
    PRIMARY KEY (worker, route)
) STRICT, WITHOUT ROWID;

-- Which secrets a source ever had, told apart by a short fingerprint.
CREATE TABLE secrets (
    source INTEGER NOT NULL REFERENCES sources (no),
    no INTEGER NOT NULL CHECK (no BETWEEN 1 AND 32767),
    fingerprint TEXT NOT NULL,
    first_used_at INTEGER NOT NULL,
    -- When a request last verified by it; about a second late.
    last_used_at INTEGER,
    PRIMARY KEY (source, no),
    UNIQUE (source, fingerprint)
) STRICT, WITHOUT ROWID;

-- What a source was sent last, written about once a second.
CREATE TABLE source_activity (
    source INTEGER PRIMARY KEY REFERENCES sources (no),
    accepted_at INTEGER,
    rejected_at INTEGER,
    reason TEXT,
    hint TEXT,
    -- Since the last request that was accepted.
    rejected_in_a_row INTEGER NOT NULL DEFAULT 0,
    CHECK ((rejected_at IS NULL) = (reason IS NULL))
) STRICT;

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

-- What fingerprints of credentials are made with. Made once, by the first server.
CREATE TABLE fingerprint_key (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    key BLOB NOT NULL CHECK (length(key) = 32)
) STRICT;

-- Certificates and key sets that providers publish and that have proved a request, as served.
CREATE TABLE published_keys (
    url TEXT NOT NULL CHECK (length(CAST(url AS BLOB)) BETWEEN 1 AND 1024),
    allow_private INTEGER NOT NULL CHECK (allow_private IN (0, 1)),
    served BLOB NOT NULL CHECK (length(served) BETWEEN 1 AND 262144),
    fresh_until INTEGER NOT NULL,
    kept_at INTEGER NOT NULL,
    PRIMARY KEY (url, allow_private)
) STRICT, WITHOUT ROWID;

-- Names that sources and routes had before: they still lead to the same one, so that a node that
-- starts with the old configuration makes no second source.
CREATE TABLE former_source_names (
    name TEXT PRIMARY KEY,
    source INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE former_route_names (
    name TEXT PRIMARY KEY,
    route INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
