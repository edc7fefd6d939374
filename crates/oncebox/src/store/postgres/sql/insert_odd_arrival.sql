-- The same odd body is kept once, only so many for one receipt, and none for a receipt that has
-- expired; all are counted elsewhere. The receipt is locked, so that it is not removed meanwhile.
WITH held AS MATERIALIZED (
    SELECT id FROM oncebox.receipts WHERE id = $2::uuid FOR KEY SHARE
)
INSERT INTO oncebox.odd_arrivals (
    id, receipt, source, oddity, event_id, content, received_at, headers, body
)
SELECT $1::uuid, held.id, $3::smallint, $4::text, $5::text, $6::uuid, $7::timestamptz,
    $8::bytea, $9::bytea
FROM held
WHERE (SELECT count(*) FROM oncebox.odd_arrivals AS o WHERE o.receipt = held.id) < $10
ON CONFLICT DO NOTHING;
