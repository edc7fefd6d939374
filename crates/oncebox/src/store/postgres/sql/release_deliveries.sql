UPDATE oncebox.deliveries AS d
SET state = 'received', reason = NULL, due_at = statement_timestamp()
FROM unnest($1::uuid[], $2::smallint[]) AS r (receipt, route)
WHERE d.receipt = r.receipt AND d.route = r.route AND d.state = 'held';
