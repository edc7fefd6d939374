-- Names map to small numbers, so that a rename keeps identities, receipts and keys.
CREATE TABLE oncebox.sources (
    no smallint PRIMARY KEY CHECK (no > 0),
    name text NOT NULL UNIQUE,
    -- Bytes of headers and bodies kept; what a quota is compared with.
    stored bigint NOT NULL DEFAULT 0
);

CREATE TABLE oncebox.routes (
    no smallint PRIMARY KEY CHECK (no > 0),
    name text NOT NULL UNIQUE
);

-- Which secrets a source ever had, told apart by a short fingerprint.
CREATE TABLE oncebox.secrets (
    source smallint NOT NULL REFERENCES oncebox.sources (no),
    no smallint NOT NULL CHECK (no > 0),
    fingerprint text NOT NULL,
    first_used_at timestamptz NOT NULL,
    PRIMARY KEY (source, no),
    UNIQUE (source, fingerprint)
);

-- One row per verified event. Ids grow with time, so the only index is written at its end. Fixed
-- widths come first: it saves padding.
CREATE TABLE oncebox.receipts (
    id uuid PRIMARY KEY,
    received_at timestamptz NOT NULL,
    signed_at timestamptz,
    version bigint,
    source smallint NOT NULL,
    secret smallint NOT NULL,
    routes smallint NOT NULL,
    trust text NOT NULL CHECK (trust IN ('signed', 'transport', 'digest')),
    event_id text NOT NULL CHECK (event_id <> ''),
    event_type text NOT NULL,
    object text,
    digest bytea NOT NULL CHECK (octet_length(digest) = 32),
    headers bytea NOT NULL,
    body bytea NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.1
);

-- The memory of identities. It outlives the payloads, so it is kept apart and compact: keys and
-- digests of sixteen bytes fit a uuid.
CREATE TABLE oncebox.identities (
    key uuid NOT NULL,
    receipt uuid NOT NULL,
    content uuid NOT NULL,
    last_seen integer NOT NULL,
    source smallint NOT NULL,
    PRIMARY KEY (source, key)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.1
);

-- Open deliveries only: what is finished leaves, so that claims stay flat.
CREATE TABLE oncebox.deliveries (
    receipt uuid NOT NULL,
    created_at timestamptz NOT NULL,
    route smallint NOT NULL REFERENCES oncebox.routes (no),
    attempts integer NOT NULL DEFAULT 0,
    state text NOT NULL CHECK (
        state IN ('received', 'processing', 'retrying', 'dead', 'held')
    ),
    PRIMARY KEY (receipt, route)
);

-- Repeated deliveries of a receipt, counted. They go with it.
CREATE TABLE oncebox.repeats (
    receipt uuid PRIMARY KEY REFERENCES oncebox.receipts (id) ON DELETE CASCADE,
    first_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL,
    duplicates bigint NOT NULL,
    conflicts bigint NOT NULL,
    twins bigint NOT NULL
);

-- Authentic arrivals that are neither new nor plain repeats, kept aside for a person to judge.
CREATE TABLE oncebox.odd_arrivals (
    id uuid PRIMARY KEY,
    receipt uuid NOT NULL REFERENCES oncebox.receipts (id) ON DELETE CASCADE,
    content uuid NOT NULL,
    received_at timestamptz NOT NULL,
    source smallint NOT NULL,
    oddity text NOT NULL CHECK (oddity IN ('conflict', 'twin')),
    event_id text NOT NULL,
    headers bytea NOT NULL,
    body bytea NOT NULL,
    UNIQUE (receipt, oddity, content, event_id)
);

-- Payloads compress well, and lz4 costs a quarter of what the default does. A server built
-- without it keeps its default.
DO $$
BEGIN
    ALTER TABLE oncebox.receipts ALTER COLUMN body SET COMPRESSION lz4;
    ALTER TABLE oncebox.receipts ALTER COLUMN headers SET COMPRESSION lz4;
    ALTER TABLE oncebox.odd_arrivals ALTER COLUMN body SET COMPRESSION lz4;
EXCEPTION
    WHEN feature_not_supported THEN NULL;
END
$$;
