UPDATE deliveries
SET state = 'received', reason = NULL, due_at = ?3
WHERE receipt = ?1 AND route = ?2 AND state = 'held';
