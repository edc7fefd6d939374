-- Which attempts could be ended if no other transaction had locked what they need.
SELECT e.n
FROM unnest($1::uuid[], $2::smallint[], $3::bigint[])
    WITH ORDINALITY AS e (receipt, route, lease, n)
CROSS JOIN LATERAL (
    SELECT 1
    FROM oncebox.deliveries AS d
    WHERE d.receipt = e.receipt
      AND d.route = e.route
      AND d.epoch = e.lease
      AND d.lease_until > clock_timestamp()
    OFFSET 0
) AS d;
