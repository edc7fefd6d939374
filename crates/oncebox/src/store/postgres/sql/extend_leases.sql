-- Rows are locked in one order: attempts may be ending at the same time. Only what is under a lease
-- has an end of it.
WITH good AS MATERIALIZED (
    SELECT d.tid
    FROM (
        SELECT receipt, route, lease
        FROM unnest($1::uuid[], $2::smallint[], $3::bigint[]) AS e (receipt, route, lease)
        ORDER BY receipt, route
    ) AS e
    CROSS JOIN LATERAL (
        SELECT d.ctid AS tid
        FROM oncebox.deliveries AS d
        WHERE d.receipt = e.receipt
          AND d.route = e.route
          AND d.epoch = e.lease
          AND d.lease_until > statement_timestamp()
        FOR UPDATE
    ) AS d
)
UPDATE oncebox.deliveries AS d
SET lease_until = statement_timestamp() + $4::bigint * interval '1 millisecond'
FROM good AS g
WHERE d.ctid = g.tid
RETURNING d.receipt, d.route, d.epoch, d.lease_until;
