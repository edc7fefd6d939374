UPDATE oncebox.deliveries
SET state = 'received', reason = NULL, due_at = statement_timestamp(), ignores_order = true
WHERE receipt = $1 AND route = $2 AND state = 'held';
