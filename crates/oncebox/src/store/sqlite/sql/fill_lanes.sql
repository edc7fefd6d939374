-- Backfills `lane` on open deliveries after their route came to guard objects. What is held as twin
-- or conflict stands outside lanes.
UPDATE deliveries
SET lane = (SELECT r.object FROM receipts AS r WHERE r.head = deliveries.receipt)
WHERE receipt IN (SELECT value FROM json_each(?2)) AND route = ?1 AND lane IS NULL
  AND (reason IS NULL OR reason NOT IN ('twin', 'conflict'));
