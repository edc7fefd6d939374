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
) WITH (
    autovacuum_vacuum_scale_factor = 0.02
);

-- The request an event came in together with others, and its place there.
ALTER TABLE oncebox.receipts ADD COLUMN request uuid, ADD COLUMN position integer;

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

-- As for the bodies of receipts.
DO $$
BEGIN
    ALTER TABLE oncebox.requests ALTER COLUMN body SET COMPRESSION lz4;
EXCEPTION
    WHEN feature_not_supported THEN NULL;
END
$$;
