-- Jobs that replay what a filter finds. A job outlives the process that drives it.
CREATE TABLE oncebox.replays (
    id uuid PRIMARY KEY,
    created_at timestamptz NOT NULL,
    lease_until timestamptz,
    epoch bigint NOT NULL DEFAULT 0,
    planned bigint NOT NULL,
    opened bigint NOT NULL DEFAULT 0,
    passed bigint NOT NULL DEFAULT 0,
    cursor_receipt uuid,
    cursor_route smallint,
    rate integer CHECK (rate > 0),
    force boolean NOT NULL,
    ignore_stale boolean NOT NULL,
    unrouted boolean NOT NULL,
    odd boolean NOT NULL,
    since timestamptz,
    until timestamptz,
    receipts uuid[] NOT NULL,
    routes smallint[] NOT NULL,
    source text,
    event_type text,
    state text,
    -- As `Fill::encode` writes it.
    fill text NOT NULL,
    phase text NOT NULL CHECK (phase IN ('running', 'done', 'cancelled')),
    who text NOT NULL,
    why text
);

-- Only hashes: the secret half is shown once, when a token is made.
CREATE TABLE oncebox.tokens (
    id text PRIMARY KEY,
    name text NOT NULL,
    hash bytea NOT NULL CHECK (octet_length(hash) = 32),
    scopes text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz
);

-- What operators did, through whichever door.
CREATE TABLE oncebox.audit (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    who text NOT NULL,
    via text NOT NULL,
    act text NOT NULL,
    subject text NOT NULL,
    why text
);

-- Requests that were rejected, of sources that ask to keep some. Nothing in them is verified:
-- they are never delivered, and gone after a day.
CREATE TABLE oncebox.rejected (
    id uuid PRIMARY KEY,
    received_at timestamptz NOT NULL,
    -- How long the body was; at most its beginning is kept.
    body_bytes bigint NOT NULL,
    source smallint NOT NULL REFERENCES oncebox.sources (no),
    reason text NOT NULL,
    hint text,
    sender text NOT NULL,
    method text NOT NULL,
    url text NOT NULL,
    headers bytea NOT NULL,
    body bytea NOT NULL CHECK (octet_length(body) <= 65536)
);

CREATE INDEX rejected_by_reason ON oncebox.rejected (source, reason, id);

-- Until when nodes write down what they do, for `oncebox tail`.
CREATE TABLE oncebox.watches (
    name text PRIMARY KEY,
    until timestamptz NOT NULL
);

-- What nodes did while an `oncebox tail` ran, kept for a minute.
CREATE TABLE oncebox.happenings (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    line text NOT NULL
);
