-- The body of a request goes with the last of its events.
DELETE FROM requests
WHERE head = ?1 AND NOT EXISTS (SELECT 1 FROM receipts AS r WHERE r.request = ?1)
RETURNING source, length(body);
