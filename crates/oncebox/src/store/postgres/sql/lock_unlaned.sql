-- Locks open deliveries without an object to guard, in the order in which attempts end: one that
-- changes meanwhile would be left out.
SELECT count(*)
FROM (
    SELECT d.receipt
    FROM oncebox.deliveries AS d
    WHERE d.receipt = ANY ($2::uuid[]) AND d.route = $1 AND d.lane IS NULL
    ORDER BY d.receipt
    FOR UPDATE
) AS d;
