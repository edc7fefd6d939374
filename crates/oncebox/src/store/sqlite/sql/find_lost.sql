-- The least suspicion among what is due of a route after its lease was lost: that is claimed apart.
SELECT lost
FROM deliveries
WHERE route = ?1 AND lost > 0 AND due_at <= ?2 AND state IN ('received', 'retrying')
ORDER BY lost, due_at
LIMIT 1;
