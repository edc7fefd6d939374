-- Locks candidates after what they share with others. Those that somebody has changed since they
-- were looked for, or holds right now, are left out: they are looked at again.
SELECT d.receipt, d.route
FROM unnest($1::uuid[], $2::smallint[], $3::bigint[]) AS c (receipt, route, epoch)
CROSS JOIN LATERAL (
    SELECT d.receipt, d.route
    FROM oncebox.deliveries AS d
    WHERE d.receipt = c.receipt
      AND d.route = c.route
      AND d.epoch = c.epoch
      AND d.state = ANY ($4::text[])
    FOR UPDATE SKIP LOCKED
) AS d;
