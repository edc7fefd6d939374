-- Backfills `lane` on open deliveries after their route came to guard objects.
UPDATE deliveries
SET lane = (SELECT r.object FROM receipts AS r WHERE r.head = deliveries.receipt)
WHERE receipt IN (SELECT value FROM json_each(?2)) AND route = ?1 AND lane IS NULL;
