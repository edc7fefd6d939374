-- The body of a request goes with the last of its events, also of those kept aside.
DELETE FROM requests
WHERE head = ?1
  AND NOT EXISTS (SELECT 1 FROM receipts AS r WHERE r.request = ?1)
  AND NOT EXISTS (SELECT 1 FROM odd_arrivals AS o WHERE o.request = ?1)
RETURNING source, counted * length(body);
