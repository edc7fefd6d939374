-- Locks open deliveries without an object to guard, and says of each whether it could be locked:
-- one that changes meanwhile would be left out. What is held as twin or conflict stands outside
-- lanes.
WITH locked AS MATERIALIZED (
    SELECT d.receipt
    FROM oncebox.deliveries AS d
    WHERE d.receipt = ANY ($2::uuid[]) AND d.route = $1 AND d.lane IS NULL
      AND (d.reason IS NULL OR d.reason NOT IN ('twin', 'conflict'))
    ORDER BY d.receipt
    FOR UPDATE SKIP LOCKED
)
SELECT d.receipt, d.receipt IN (SELECT l.receipt FROM locked AS l)
FROM oncebox.deliveries AS d
WHERE d.receipt = ANY ($2) AND d.route = $1 AND d.lane IS NULL
  AND (d.reason IS NULL OR d.reason NOT IN ('twin', 'conflict'))
ORDER BY d.receipt;
