-- Names map to small numbers, so that a rename keeps identities, receipts and keys.
CREATE TABLE oncebox.sources (
    no smallint PRIMARY KEY CHECK (no > 0),
    name text NOT NULL UNIQUE,
    -- The name it was born with goes into idempotency keys, so that a rename keeps them.
    born_as text NOT NULL,
    -- Bytes of headers and bodies kept; what a quota is compared with.
    stored bigint NOT NULL DEFAULT 0,
    -- Whether a request was proved in the strongest way of its provider, so that it is required.
    proved_strongest boolean NOT NULL DEFAULT false
);

-- How long a source keeps what it received, as each node that has it configured told. The longest
-- window wins, so that no node forgets by its own configuration, nor by having none.
CREATE TABLE oncebox.source_windows (
    payloads_s bigint NOT NULL,
    identities_s bigint NOT NULL,
    told_at timestamptz NOT NULL,
    source smallint NOT NULL REFERENCES oncebox.sources (no),
    node text NOT NULL,
    PRIMARY KEY (source, node)
);

-- The rules of a route as last configured, so that every node and operator decides alike.
CREATE TABLE oncebox.routes (
    no smallint PRIMARY KEY CHECK (no > 0),
    name text NOT NULL UNIQUE,
    -- As that of a source.
    born_as text NOT NULL,
    -- The service whose workers it has: keys of effects are told apart by it. NULL until told,
    -- empty for the service without a name.
    service text,
    -- After the route came to guard objects: the last receipt whose open delivery was given its
    -- object. Nothing is claimed until all have theirs.
    fill_after uuid,
    paused_at timestamptz,
    base_ms bigint NOT NULL DEFAULT 5000 CHECK (base_ms > 0),
    cap_ms bigint NOT NULL DEFAULT 43200000 CHECK (cap_ms > 0),
    budget_ms bigint CHECK (budget_ms > 0),
    hold_for_ms bigint NOT NULL DEFAULT 3600000 CHECK (hold_for_ms >= 0),
    longest_wait_ms bigint NOT NULL DEFAULT 604800000 CHECK (longest_wait_ms > 0),
    same_operation_ms bigint CHECK (same_operation_ms > 0),
    max_attempts integer NOT NULL DEFAULT 15 CHECK (max_attempts > 0),
    max_snoozes integer NOT NULL DEFAULT 100 CHECK (max_snoozes >= 0),
    ordered boolean NOT NULL DEFAULT false,
    skip_stale boolean NOT NULL DEFAULT false,
    -- Whether workers elsewhere take from it. One that they do not take from is pushed.
    pulled boolean NOT NULL DEFAULT true,
    on_dead text NOT NULL DEFAULT 'hold' CHECK (on_dead IN ('hold', 'continue'))
);

-- Breakers that are not closed, as workers tell. Operators see them; nothing is decided by them.
CREATE TABLE oncebox.breakers (
    told_at timestamptz NOT NULL,
    next_probe_at timestamptz,
    route smallint NOT NULL,
    worker text NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (worker, route)
);

-- Which secrets a source ever had, told apart by a short fingerprint.
CREATE TABLE oncebox.secrets (
    source smallint NOT NULL REFERENCES oncebox.sources (no),
    no smallint NOT NULL CHECK (no > 0),
    fingerprint text NOT NULL,
    first_used_at timestamptz NOT NULL,
    -- When a request last verified by it; about a second late.
    last_used_at timestamptz,
    PRIMARY KEY (source, no),
    UNIQUE (source, fingerprint)
);

-- What a source was sent last, written about once a second by each node.
CREATE TABLE oncebox.source_activity (
    source smallint PRIMARY KEY REFERENCES oncebox.sources (no),
    accepted_at timestamptz,
    rejected_at timestamptz,
    -- Since the last request that was accepted.
    rejected_in_a_row bigint NOT NULL DEFAULT 0,
    reason text,
    hint text,
    CHECK ((rejected_at IS NULL) = (reason IS NULL))
);

-- Windows in which a source takes a secret from its provider, one of each source.
CREATE TABLE oncebox.pairings (
    source smallint PRIMARY KEY REFERENCES oncebox.sources (no),
    -- The last number that a secret was given.
    last smallint NOT NULL DEFAULT 0 CHECK (last >= 0),
    -- The secret that has closed the window.
    paired smallint,
    -- None while there is no window.
    opened_at timestamptz,
    until timestamptz,
    CHECK ((opened_at IS NULL) = (until IS NULL)),
    CHECK (paired IS NULL OR until IS NOT NULL)
);

-- Secrets that came in a handshake, sealed. The mark tells one from another without opening it.
CREATE TABLE oncebox.paired_secrets (
    source smallint NOT NULL REFERENCES oncebox.sources (no),
    no smallint NOT NULL CHECK (no > 0),
    mark uuid NOT NULL,
    paired_at timestamptz NOT NULL,
    fingerprint text NOT NULL,
    sealed bytea NOT NULL CHECK (octet_length(sealed) BETWEEN 1 AND 8192),
    PRIMARY KEY (source, no),
    UNIQUE (source, mark)
);

-- What fingerprints of credentials are made with. Made once, by the first server.
CREATE TABLE oncebox.fingerprint_key (
    one smallint PRIMARY KEY CHECK (one = 1),
    key bytea NOT NULL CHECK (octet_length(key) = 32)
);

-- Certificates and key sets that providers publish and that have proved a request, as served.
CREATE TABLE oncebox.published_keys (
    fresh_until timestamptz NOT NULL,
    kept_at timestamptz NOT NULL,
    allow_private boolean NOT NULL,
    url text NOT NULL CHECK (octet_length(url) BETWEEN 1 AND 1024),
    served bytea NOT NULL CHECK (octet_length(served) BETWEEN 1 AND 262144),
    PRIMARY KEY (url, allow_private)
);

-- Names that sources and routes had before: they still lead to the same one, so that a node that
-- starts with the old configuration while others were renamed makes no second source.
CREATE TABLE oncebox.former_source_names (
    name text PRIMARY KEY,
    source smallint NOT NULL
);

CREATE TABLE oncebox.former_route_names (
    name text PRIMARY KEY,
    route smallint NOT NULL
);
