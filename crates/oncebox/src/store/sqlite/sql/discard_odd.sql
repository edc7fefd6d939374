-- Deliveries that are held as twin or conflict go with their receipt, unless another delivery of it
-- is open.
DELETE FROM deliveries
WHERE receipt = ?1
  AND reason IN ('twin', 'conflict')
  AND NOT EXISTS (
      SELECT 1 FROM deliveries AS o
      WHERE o.receipt = ?1 AND (o.reason IS NULL OR o.reason NOT IN ('twin', 'conflict'))
  )
RETURNING route, (SELECT r.tail FROM receipts AS r WHERE r.head = ?1);
