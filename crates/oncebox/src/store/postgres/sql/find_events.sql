-- Event ids by a range of their keys, in every source; what they held may have expired. Messages of
-- the outbox have no event id.
SELECT i.receipt, i.name, r.event_id, r.event_type, r.received_at, false
FROM (
    SELECT s.name, i.receipt
    FROM oncebox.sources AS s
    JOIN oncebox.identities AS i ON i.source = s.no
    WHERE i.key BETWEEN $1 AND $2 AND s.name NOT LIKE 'outbox/%'
    LIMIT $3
) AS i
LEFT JOIN oncebox.receipts AS r ON r.id = i.receipt;
