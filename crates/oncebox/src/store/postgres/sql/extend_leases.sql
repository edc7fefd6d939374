-- Rows are locked in one order: an attempt may be ending at the same time.
WITH good AS MATERIALIZED (
    SELECT d.receipt, d.route
    FROM unnest($1::uuid[], $2::smallint[], $3::bigint[]) AS e (receipt, route, lease)
    JOIN oncebox.deliveries AS d
        ON d.receipt = e.receipt AND d.route = e.route AND d.epoch = e.lease
    WHERE d.state = 'processing' AND d.lease_until > statement_timestamp()
    ORDER BY d.receipt, d.route
    FOR UPDATE OF d
)
UPDATE oncebox.deliveries AS d
SET lease_until = statement_timestamp() + $4::bigint * interval '1 millisecond'
FROM good AS g
WHERE d.receipt = g.receipt AND d.route = g.route
RETURNING d.receipt, d.route, d.epoch;
