-- Backfills `lane` on open deliveries after their route came to guard objects. Locked before.
UPDATE oncebox.deliveries AS d
SET lane = r.object
FROM (
    SELECT r.id, r.object FROM oncebox.receipts AS r WHERE r.id = ANY ($2::uuid[])
) AS r
WHERE d.receipt = ANY ($2) AND d.route = $1 AND d.lane IS NULL
  AND r.id = d.receipt AND r.object IS NOT NULL;
