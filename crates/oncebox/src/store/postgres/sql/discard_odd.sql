-- Deliveries that are held as twin or conflict go with their receipt, unless another delivery of it
-- is open. Receipts are locked before.
DELETE FROM oncebox.deliveries AS d
WHERE d.receipt = ANY ($1)
  AND d.reason IN ('twin', 'conflict')
  AND NOT EXISTS (
      SELECT 1 FROM oncebox.deliveries AS o
      WHERE o.receipt = d.receipt AND (o.reason IS NULL OR o.reason NOT IN ('twin', 'conflict'))
  )
RETURNING d.receipt, d.route;
