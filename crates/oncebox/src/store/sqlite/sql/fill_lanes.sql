-- Gives what is open of a route that has come to guard objects its object.
UPDATE deliveries
SET lane = (SELECT r.object FROM receipts AS r WHERE r.head = deliveries.receipt)
WHERE route = ?1 AND lane IS NULL
  AND EXISTS (
    SELECT 1 FROM receipts AS r WHERE r.head = deliveries.receipt AND r.object IS NOT NULL
  );
