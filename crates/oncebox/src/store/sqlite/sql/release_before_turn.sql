UPDATE deliveries
SET state = 'received', reason = NULL, effect = NULL, due_at = ?3, ignores_order = 1
WHERE receipt = ?1 AND route = ?2 AND state = 'held';
