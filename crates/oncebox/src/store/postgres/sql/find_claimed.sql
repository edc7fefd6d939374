-- What is told of receipts with a claim.
SELECT
    r.id, r.event_id, r.event_type, r.object, r.version, r.received_at,
    octet_length(r.headers) + octet_length(r.body), r.oddity, r.first,
    CASE WHEN r.oddity IN ('twin', 'conflict') THEN r.digest END
FROM oncebox.receipts AS r
WHERE r.id = ANY ($1);
