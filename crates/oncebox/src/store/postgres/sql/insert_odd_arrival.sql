-- The same odd body is kept once, and only so many for one receipt; all are counted elsewhere.
INSERT INTO oncebox.odd_arrivals (
    id, receipt, source, oddity, event_id, content, received_at, headers, body
)
SELECT $1::uuid, $2::uuid, $3::smallint, $4::text, $5::text, $6::uuid, $7::timestamptz,
    $8::bytea, $9::bytea
WHERE (SELECT count(*) FROM oncebox.odd_arrivals WHERE receipt = $2) < $10
ON CONFLICT DO NOTHING;
