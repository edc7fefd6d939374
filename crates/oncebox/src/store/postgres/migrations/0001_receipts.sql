-- One row per event; one that nobody verified (a capture) is marked so. Ids grow with time, so the
-- only index is written at its end. Fixed widths come first: it saves padding.
CREATE TABLE oncebox.receipts (
    id uuid PRIMARY KEY,
    received_at timestamptz NOT NULL,
    signed_at timestamptz,
    version bigint,
    source smallint NOT NULL,
    secret smallint NOT NULL,
    routes smallint NOT NULL,
    trust text NOT NULL CHECK (trust IN ('signed', 'transport', 'digest', 'unverified')),
    event_id text NOT NULL CHECK (event_id <> ''),
    event_type text NOT NULL,
    object text,
    digest bytea NOT NULL CHECK (octet_length(digest) = 32),
    headers bytea NOT NULL,
    body bytea NOT NULL,
    -- The request it came in together with others, and its place there.
    request uuid,
    position integer
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.1
);

-- Requests that carried several events. The whole body is what their signature is over, and is
-- kept once. The bytes of each event are in its receipt as well, so that claims, pushes and lists
-- are as fast as for any other event: they never come here. The id is the one minted for the
-- first of the events.
CREATE TABLE oncebox.requests (
    id uuid PRIMARY KEY,
    events integer NOT NULL CHECK (events > 0),
    -- How many receipts and odd arrivals name it. It goes with the last of them. A count, and no
    -- index on receipts: events that came alone would pay for that.
    receipts integer NOT NULL,
    source smallint NOT NULL,
    -- Whether its bytes count against the quota of its source. As long as it is there only for what
    -- was kept aside they do not, like those of any odd arrival.
    counted boolean NOT NULL DEFAULT true,
    body bytea NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0.02
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
    -- As in receipts: what such an event is, and whether it is genuine, only the whole can tell.
    request uuid,
    position integer,
    UNIQUE (receipt, oddity, content, event_id)
);

-- Payloads compress well, and lz4 costs a quarter of what the default does. A server built
-- without it keeps its default.
DO $$
BEGIN
    ALTER TABLE oncebox.receipts ALTER COLUMN body SET COMPRESSION lz4;
    ALTER TABLE oncebox.receipts ALTER COLUMN headers SET COMPRESSION lz4;
    ALTER TABLE oncebox.requests ALTER COLUMN body SET COMPRESSION lz4;
    ALTER TABLE oncebox.odd_arrivals ALTER COLUMN body SET COMPRESSION lz4;
EXCEPTION
    WHEN feature_not_supported THEN NULL;
END
$$;
