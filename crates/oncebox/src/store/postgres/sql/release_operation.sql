-- Lets go what waited for a delivery of the same operation: it is judged again at its claim. One
-- that is gone for good was in the way of all; one that only gave back its lease was in the way of
-- those before it. Operations are locked before.
UPDATE oncebox.deliveries AS d
SET state = 'received', reason = NULL, due_at = statement_timestamp()
FROM unnest($1::smallint[], $2::uuid[], $3::uuid[], $4::boolean[], $5::boolean[])
    AS o (route, operation, receipt, gone, dead)
JOIN oncebox.routes AS t ON t.no = o.route
CROSS JOIN LATERAL (
    SELECT w.ctid AS tid
    FROM oncebox.deliveries AS w
    WHERE w.route = o.route
      AND w.operation = o.operation
      AND w.reason = 'same-operation'
      AND (o.gone OR o.dead AND t.on_dead = 'continue' OR w.receipt < o.receipt)
    OFFSET 0
) AS w
WHERE d.ctid = w.tid AND d.reason = 'same-operation';
