-- A delivery under a good lease. The whole id is compared: keys of steps are made of it.
SELECT d.source, d.attempts
FROM deliveries AS d
JOIN receipts AS r ON r.head = d.receipt
WHERE d.receipt = ?1 AND r.tail = ?2 AND d.route = ?3
  AND d.state = 'processing' AND d.epoch = ?4 AND d.lease_until > ?5;
