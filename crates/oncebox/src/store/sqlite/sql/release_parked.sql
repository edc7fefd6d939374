UPDATE deliveries
SET state = 'retrying', reason = NULL, effect = NULL, due_at = ?2
WHERE effect = ?1 AND reason = 'unknown-effect';
