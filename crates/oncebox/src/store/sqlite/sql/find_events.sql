-- Event ids by a range of their keys, in every source; what they held may have expired. Messages of
-- the outbox have no event id.
SELECT i.head, i.tail, s.name, r.event_id, r.event_type, r.received_at, 0
FROM sources AS s
CROSS JOIN identities AS i ON i.source = s.no
LEFT JOIN receipts AS r ON r.head = i.head AND r.tail = i.tail
WHERE i.key BETWEEN ?1 AND ?2 AND s.name NOT GLOB 'outbox/*'
LIMIT ?3;
