-- Lets go what is held. It is locked by this transaction.
UPDATE oncebox.deliveries AS d
SET state = 'received', reason = NULL, due_at = statement_timestamp()
FROM unnest($1::uuid[], $2::smallint[]) AS r (receipt, route)
CROSS JOIN LATERAL (
    SELECT o.ctid AS tid
    FROM oncebox.deliveries AS o
    WHERE o.receipt = r.receipt AND o.route = r.route
    OFFSET 0
) AS o
WHERE d.ctid = o.tid;
