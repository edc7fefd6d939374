-- Locks what is open of a route without an object to guard, in the order in which attempts end.
SELECT count(*)
FROM (
    SELECT d.receipt
    FROM oncebox.deliveries AS d
    WHERE d.route = $1 AND d.lane IS NULL
    ORDER BY d.receipt
    FOR UPDATE
) AS d;
