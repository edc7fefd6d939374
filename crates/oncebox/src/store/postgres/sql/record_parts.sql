-- As record.sql, for a batch in which requests with several events are among the others. A
-- statement of its own, so that events that came alone carry nothing for it.
WITH claimed AS (
    -- Of two events of a request with one identity the first is the one: ids grow.
    INSERT INTO oncebox.identities (source, key, receipt, content, last_seen)
    SELECT source, key, receipt, content, last_seen
    FROM unnest($1::smallint[], $2::uuid[], $3::uuid[], $4::uuid[], $5::integer[])
        AS i (source, key, receipt, content, last_seen)
    ORDER BY source, key, receipt
    ON CONFLICT (source, key) DO NOTHING
    RETURNING receipt
),
guarded AS (
    INSERT INTO oncebox.identities (source, key, receipt, content, last_seen)
    SELECT source, key, receipt, content, last_seen
    FROM unnest($6::smallint[], $7::uuid[], $8::uuid[], $9::uuid[], $10::integer[])
        AS g (source, key, receipt, content, last_seen)
    WHERE receipt IN (SELECT receipt FROM claimed)
    ORDER BY source, key, receipt
    ON CONFLICT (source, key) DO NOTHING
    RETURNING receipt
),
kept AS (
    INSERT INTO oncebox.receipts (
        id, received_at, signed_at, version, source, secret, routes, trust, event_id, event_type,
        object, digest, headers, body, request, position
    )
    SELECT
        id, received_at, signed_at, version, source, secret, routes, trust, event_id, event_type,
        object, digest, headers, body, request, position
    FROM unnest(
        $3::uuid[], $1::smallint[], $11::timestamptz[], $12::timestamptz[], $13::bigint[],
        $14::smallint[], $15::smallint[], $16::text[], $17::text[], $18::text[], $19::text[],
        $20::bytea[], $21::bytea[], $22::bytea[], $23::boolean[], $31::uuid[], $32::integer[]
    ) AS a (
        id, source, received_at, signed_at, version, secret, routes, trust, event_id, event_type,
        object, digest, headers, body, guard, request, position
    )
    WHERE id IN (SELECT receipt FROM claimed)
      AND (NOT guard OR id IN (SELECT receipt FROM guarded))
    RETURNING id, request, received_at, source, event_type
),
counted AS (
    INSERT INTO oncebox.arrival_deltas (minute, count, source, outcome, event_type)
    SELECT
        floor(extract(epoch FROM received_at) / 60)::integer, count(*), source, 'accepted',
        event_type
    FROM kept
    GROUP BY 1, source, event_type
),
queued AS (
    INSERT INTO oncebox.deliveries (
        receipt, route, source, state, created_at, lane, place, operation
    )
    SELECT receipt, route, source, 'received', created_at, lane, place, operation
    FROM unnest(
        $24::uuid[], $25::smallint[], $26::timestamptz[], $27::smallint[], $28::text[],
        $29::bigint[], $30::uuid[]
    ) AS d (receipt, route, created_at, source, lane, place, operation)
    WHERE receipt IN (SELECT id FROM kept)
),
-- A request is kept if one of its events is. It is there already where they are recorded one by
-- one.
named AS (
    SELECT request, count(*)::integer AS receipts FROM kept GROUP BY request
),
requested AS (
    INSERT INTO oncebox.requests AS q (id, source, events, body, receipts)
    SELECT r.id, r.source, r.events, r.body, n.receipts
    FROM unnest($33::uuid[], $34::smallint[], $35::integer[], $36::bytea[])
        AS r (id, source, events, body)
    JOIN named AS n ON n.request = r.id
    ORDER BY r.id
    ON CONFLICT (id) DO UPDATE SET receipts = q.receipts + excluded.receipts, counted = true
)
SELECT id FROM kept;
