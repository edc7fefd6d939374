SELECT r.head, r.tail, d.route, t.max_attempts
FROM deliveries AS d
JOIN receipts AS r ON r.head = d.receipt
JOIN routes AS t ON t.no = d.route
WHERE d.state = 'processing' AND d.lease_until <= ?1
ORDER BY d.lease_until
LIMIT ?2;
