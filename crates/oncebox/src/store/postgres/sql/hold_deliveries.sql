-- Moves candidates that must wait out of the way of claims. They are locked by this transaction.
UPDATE oncebox.deliveries AS d
SET state = 'held', reason = h.reason
FROM unnest($1::uuid[], $2::smallint[], $3::text[]) AS h (receipt, route, reason)
CROSS JOIN LATERAL (
    SELECT o.ctid AS tid
    FROM oncebox.deliveries AS o
    WHERE o.receipt = h.receipt AND o.route = h.route
    OFFSET 0
) AS o
WHERE d.ctid = o.tid;
