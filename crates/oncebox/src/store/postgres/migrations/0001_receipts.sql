-- One row per event; one that nobody verified (a capture) is marked so. Ids grow with time, so the
-- only index is written at its end, and the rows lie in a table for each day. Fixed widths come
-- first: it saves padding.
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
    position integer,
    -- What is odd about it, and the receipt that came first with its content or its identity.
    oddity text CHECK (oddity IN ('twin', 'conflict', 'defect')),
    first uuid,
    CHECK ((first IS NOT NULL) = (oddity IS NOT NULL AND oddity <> 'defect'))
) PARTITION BY RANGE (id);

-- The twins and conflicts of a receipt. Other receipts are not in it.
CREATE INDEX receipts_first ON oncebox.receipts (first, id) WHERE first IS NOT NULL;

-- Odd receipts by their event id: that of a twin is in no identity. Collated apart, so that the
-- beginning of an id finds it.
CREATE INDEX receipts_odd ON oncebox.receipts (event_id COLLATE "C") WHERE oddity IS NOT NULL;

-- Requests that carried several events. The whole body is what their signature is over, and is
-- kept once. The bytes of each event are in its receipt as well, so that claims, pushes and lists
-- are as fast as for any other event: they never come here. The id is the one minted for the
-- first of the events.
CREATE TABLE oncebox.requests (
    id uuid PRIMARY KEY,
    events integer NOT NULL CHECK (events > 0),
    -- How many receipts name it. It goes with the last of them. A count, and no index on receipts:
    -- events that came alone would pay for that.
    receipts integer NOT NULL,
    source smallint NOT NULL,
    body bytea NOT NULL
) PARTITION BY RANGE (id);

-- The memory of identities. It outlives the payloads, so it is kept apart and compact: keys and
-- digests of sixteen bytes fit a uuid. It lies in several tables by the hash of the key, so that
-- none of them, nor a vacuum of it, becomes too large.
CREATE TABLE oncebox.identities (
    key uuid NOT NULL,
    receipt uuid NOT NULL,
    content uuid NOT NULL,
    last_seen integer NOT NULL,
    source smallint NOT NULL,
    PRIMARY KEY (source, key)
) PARTITION BY HASH (key);

-- Signed content that must not come in unmarked under another, unsigned id: which receipt came
-- first with it, and the key of that event's identity. The key is that of the content; where one
-- body comes under several types, each further type has a row of its own (its key holds the type),
-- and `type` is the key of the first one.
CREATE TABLE oncebox.guards (
    key uuid NOT NULL,
    receipt uuid NOT NULL,
    identity uuid NOT NULL,
    type uuid NOT NULL,
    last_seen integer NOT NULL,
    source smallint NOT NULL,
    -- Twins of this content that were held, and types it came under beside the first.
    held smallint NOT NULL DEFAULT 0,
    types smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (source, key)
) PARTITION BY HASH (key);

DO $$
BEGIN
    FOR n IN 0..7 LOOP
        EXECUTE format(
            'CREATE TABLE oncebox.identities_%1$s PARTITION OF oncebox.identities
                FOR VALUES WITH (MODULUS 8, REMAINDER %1$s)
                WITH (
                    autovacuum_vacuum_scale_factor = 0.02,
                    autovacuum_vacuum_insert_scale_factor = 0.1
                );
            CREATE TABLE oncebox.guards_%1$s PARTITION OF oncebox.guards
                FOR VALUES WITH (MODULUS 8, REMAINDER %1$s)
                WITH (
                    autovacuum_vacuum_scale_factor = 0.02,
                    autovacuum_vacuum_insert_scale_factor = 0.1
                )',
            n
        );
    END LOOP;
END
$$;

-- Repeated deliveries of a receipt, counted. They go with it.
CREATE TABLE oncebox.repeats (
    receipt uuid PRIMARY KEY,
    first_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL,
    duplicates bigint NOT NULL,
    conflicts bigint NOT NULL,
    twins bigint NOT NULL
);

-- Payloads compress well, and lz4 costs a quarter of what the default does. A server built
-- without it keeps its default.
DO $$
BEGIN
    ALTER TABLE oncebox.receipts ALTER COLUMN body SET COMPRESSION lz4;
    ALTER TABLE oncebox.receipts ALTER COLUMN headers SET COMPRESSION lz4;
    ALTER TABLE oncebox.requests ALTER COLUMN body SET COMPRESSION lz4;
EXCEPTION
    WHEN feature_not_supported THEN NULL;
END
$$;
