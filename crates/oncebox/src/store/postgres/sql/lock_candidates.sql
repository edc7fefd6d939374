-- Locks candidates after what they share with others. Those that somebody has changed since they
-- were looked for, or holds right now, are left out: they are looked at again.
SELECT d.receipt, d.route
FROM unnest($1::uuid[], $2::smallint[], $3::bigint[]) AS c (receipt, route, epoch)
JOIN oncebox.deliveries AS d
    ON d.receipt = c.receipt AND d.route = c.route AND d.epoch = c.epoch
WHERE d.state = ANY ($4::text[])
FOR UPDATE OF d SKIP LOCKED;
