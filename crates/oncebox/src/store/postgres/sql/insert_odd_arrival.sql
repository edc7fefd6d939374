-- The same odd body is kept once, only so many for one receipt, and none for a receipt that has
-- expired; all are counted elsewhere. The receipt is locked, so that it is not removed meanwhile.
-- Of one that is kept, says whether its request is still to be: the whole is sent only then.
WITH held AS MATERIALIZED (
    SELECT id FROM oncebox.receipts WHERE id = $2::uuid FOR KEY SHARE
),
kept AS (
    INSERT INTO oncebox.odd_arrivals (
        id, receipt, source, oddity, event_id, content, received_at, headers, body, request,
        position
    )
    SELECT $1::uuid, held.id, $3::smallint, $4::text, $5::text, $6::uuid, $7::timestamptz,
        $8::bytea, $9::bytea, $10::uuid, $11::integer
    FROM held
    WHERE (SELECT count(*) FROM oncebox.odd_arrivals AS o WHERE o.receipt = held.id) < $12
    ON CONFLICT DO NOTHING
    RETURNING request
),
named AS (
    UPDATE oncebox.requests AS q SET receipts = q.receipts + 1
    FROM kept
    WHERE q.id = kept.request
    RETURNING q.id
)
SELECT request IS NOT NULL AND NOT EXISTS (SELECT 1 FROM named) FROM kept;
