-- As record.sql, for a batch in which requests with several events are among the others. A
-- statement of its own, so that events that came alone carry nothing for it.
-- Content that is known already makes a twin, which does not own its id. Should another node record
-- that content at this very moment, the constraint on guards decides.
WITH known AS MATERIALIZED (
    SELECT g.receipt
    FROM unnest($6::smallint[], $7::uuid[], $8::uuid[]) AS g (source, key, receipt)
    WHERE EXISTS (
        SELECT 1 FROM oncebox.guards AS k WHERE k.source = g.source AND k.key = g.key OFFSET 0
    )
),
claimed AS (
    -- Of two events of a request with one identity the first is the one: ids grow.
    INSERT INTO oncebox.identities (source, key, receipt, content, last_seen)
    SELECT source, key, receipt, content, last_seen
    FROM unnest($1::smallint[], $2::uuid[], $3::uuid[], $4::uuid[], $5::integer[])
        AS i (source, key, receipt, content, last_seen)
    WHERE receipt <> ALL (ARRAY(SELECT receipt FROM known))
    ORDER BY source, key, receipt
    ON CONFLICT (source, key) DO NOTHING
    RETURNING receipt
),
guarded AS (
    INSERT INTO oncebox.guards (source, key, receipt, identity, type, last_seen)
    SELECT source, key, receipt, identity, type, last_seen
    FROM unnest($6::smallint[], $7::uuid[], $8::uuid[], $9::uuid[], $10::uuid[], $11::integer[])
        AS g (source, key, receipt, identity, type, last_seen)
    WHERE receipt IN (SELECT receipt FROM claimed)
    ORDER BY source, key, receipt
    ON CONFLICT (source, key) DO NOTHING
    RETURNING receipt
),
kept AS (
    INSERT INTO oncebox.receipts (
        id, received_at, signed_at, version, source, secret, routes, trust, event_id, event_type,
        object, digest, headers, body, request, position, oddity
    )
    SELECT
        id, received_at, signed_at, version, source, secret, routes, trust, event_id, event_type,
        object, digest, headers, body, request, position, oddity
    FROM unnest(
        $3::uuid[], $1::smallint[], $12::timestamptz[], $13::timestamptz[], $14::bigint[],
        $15::smallint[], $16::smallint[], $17::text[], $18::text[], $19::text[], $20::text[],
        $21::bytea[], $22::bytea[], $23::bytea[], $24::boolean[], $32::uuid[], $33::integer[],
        $38::text[]
    ) AS a (
        id, source, received_at, signed_at, version, secret, routes, trust, event_id, event_type,
        object, digest, headers, body, guard, request, position, oddity
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
    SELECT
        receipt, route, source, 'received', created_at,
        -- The stored rules decide: a node that has not reloaded yet goes by older ones.
        CASE WHEN (SELECT t.ordered OR t.skip_stale FROM oncebox.routes AS t WHERE t.no = d.route)
            THEN object END,
        place, operation
    FROM unnest(
        $25::uuid[], $26::smallint[], $27::timestamptz[], $28::smallint[], $29::text[],
        $30::bigint[], $31::uuid[]
    ) AS d (receipt, route, created_at, source, object, place, operation)
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
    FROM unnest($34::uuid[], $35::smallint[], $36::integer[], $37::bytea[])
        AS r (id, source, events, body)
    JOIN named AS n ON n.request = r.id
    ORDER BY r.id
    ON CONFLICT (id) DO UPDATE SET receipts = q.receipts + excluded.receipts
)
SELECT id FROM kept;
