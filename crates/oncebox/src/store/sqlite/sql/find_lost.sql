-- A due delivery whose last lease was lost: it is claimed alone.
SELECT receipt, due_at
FROM deliveries
WHERE route = ?1 AND due_at <= ?2 AND lost AND state IN ('received', 'retrying')
ORDER BY due_at, receipt
LIMIT 1;
