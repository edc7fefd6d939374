UPDATE deliveries
SET state = 'held', reason = ?3
WHERE receipt = ?1 AND route = ?2 AND state IN ('received', 'retrying');
