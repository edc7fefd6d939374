-- Gives what is open of a route that has come to guard objects its object. Locked before.
UPDATE oncebox.deliveries AS d
SET lane = r.object
FROM oncebox.receipts AS r
WHERE d.route = $1 AND d.lane IS NULL AND r.id = d.receipt AND r.object IS NOT NULL;
