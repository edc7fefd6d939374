SELECT state, reason, attempts
FROM (
    SELECT receipt, state, reason, attempts FROM deliveries WHERE receipt = ?1 AND route = ?3
    UNION ALL
    SELECT receipt, state, reason, attempts FROM finished WHERE receipt = ?1 AND route = ?3
)
WHERE EXISTS (SELECT 1 FROM receipts WHERE head = ?1 AND tail = ?2);
