UPDATE deliveries
SET due_at = min(due_at, ?3), hastened_at = ?3
WHERE receipt = ?1 AND route = ?2 AND state = 'retrying'
  AND (hastened_at IS NULL OR hastened_at <= ?4);
