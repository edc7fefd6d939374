SELECT r.head, r.tail, d.route
FROM deliveries AS d
JOIN receipts AS r ON r.head = d.receipt
WHERE d.state = 'processing' AND d.lease_until <= ?1
ORDER BY d.lease_until
LIMIT ?2;
