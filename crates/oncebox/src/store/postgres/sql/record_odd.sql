-- Twins and conflicts of a batch as receipts of their own. Each is known by its id together with
-- its content, so that of two nodes one records it; a copy of it is its duplicate.
WITH claimed AS (
    INSERT INTO oncebox.identities (source, key, receipt, content, last_seen)
    SELECT source, key, receipt, content, last_seen
    FROM unnest($1::smallint[], $2::uuid[], $3::uuid[], $4::uuid[], $5::integer[])
        AS i (source, key, receipt, content, last_seen)
    ORDER BY source, key, receipt
    ON CONFLICT (source, key) DO NOTHING
    RETURNING receipt
),
kept AS (
    INSERT INTO oncebox.receipts (
        id, received_at, signed_at, version, source, secret, routes, trust, event_id, event_type,
        object, digest, headers, body, request, position, oddity, first
    )
    SELECT
        id, received_at, signed_at, version, source, secret, routes, trust, event_id, event_type,
        object, digest, headers, body, request, position, oddity, first
    FROM unnest(
        $3::uuid[], $1::smallint[], $6::timestamptz[], $7::timestamptz[], $8::bigint[],
        $9::smallint[], $10::smallint[], $11::text[], $12::text[], $13::text[], $14::text[],
        $15::bytea[], $16::bytea[], $17::bytea[], $18::uuid[], $19::integer[], $20::text[],
        $21::uuid[]
    ) AS a (
        id, source, received_at, signed_at, version, secret, routes, trust, event_id, event_type,
        object, digest, headers, body, request, position, oddity, first
    )
    WHERE id IN (SELECT receipt FROM claimed)
    RETURNING id, request, received_at, source, event_type, oddity
),
counted AS (
    INSERT INTO oncebox.arrival_deltas (minute, count, source, outcome, event_type)
    SELECT
        floor(extract(epoch FROM received_at) / 60)::integer, count(*), source,
        CASE oddity WHEN 'twin' THEN 'twin' ELSE 'conflict' END, event_type
    FROM kept
    GROUP BY 1, 3, 4, 5
),
queued AS (
    INSERT INTO oncebox.deliveries (
        receipt, route, source, state, reason, created_at, lane, place, operation
    )
    SELECT
        receipt, route, source, state, reason, created_at,
        CASE WHEN (SELECT t.ordered OR t.skip_stale FROM oncebox.routes AS t WHERE t.no = d.route)
            THEN object END,
        place, operation
    FROM unnest(
        $22::uuid[], $23::smallint[], $24::timestamptz[], $25::smallint[], $26::text[],
        $27::bigint[], $28::uuid[], $29::text[], $30::text[]
    ) AS d (receipt, route, created_at, source, object, place, operation, state, reason)
    WHERE receipt IN (SELECT id FROM kept)
),
named AS (
    SELECT request, count(*)::integer AS receipts FROM kept GROUP BY request
),
requested AS (
    INSERT INTO oncebox.requests AS q (id, source, events, body, receipts)
    SELECT r.id, r.source, r.events, r.body, n.receipts
    FROM unnest($31::uuid[], $32::smallint[], $33::integer[], $34::bytea[])
        AS r (id, source, events, body)
    JOIN named AS n ON n.request = r.id
    ORDER BY r.id
    ON CONFLICT (id) DO UPDATE SET receipts = q.receipts + excluded.receipts
)
SELECT id FROM kept;
