-- Checked again where it is decided: a replay may have opened a delivery since it was looked at.
DELETE FROM receipts
WHERE head = ?1 AND NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.receipt = ?1)
RETURNING source, length(headers) + length(body), request;
