-- Locks deliveries in the order in which all do, and says whose lease is good. What is being
-- extended or ended right now is waited for: a lease is looked at only after that.
SELECT d.receipt, d.route, d.epoch, d.attempts, coalesce(d.lease_until > clock_timestamp(), false)
FROM (
    SELECT receipt, route
    FROM unnest($1::uuid[], $2::smallint[]) AS w (receipt, route)
    ORDER BY receipt, route
) AS w
CROSS JOIN LATERAL (
    SELECT d.*
    FROM oncebox.deliveries AS d
    WHERE d.receipt = w.receipt AND d.route = w.route
    FOR UPDATE
) AS d;
