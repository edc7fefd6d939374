-- Receipts between two ids of which nothing is open but what is held as twin or conflict.
SELECT DISTINCT d.receipt
FROM oncebox.deliveries AS d
WHERE d.receipt >= $1 AND d.receipt < $2
  AND d.reason IN ('twin', 'conflict')
  AND NOT EXISTS (
      SELECT 1 FROM oncebox.deliveries AS o
      WHERE o.receipt = d.receipt AND (o.reason IS NULL OR o.reason NOT IN ('twin', 'conflict'))
  )
ORDER BY d.receipt
LIMIT $3;
