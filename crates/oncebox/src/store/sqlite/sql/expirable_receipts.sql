-- What a step of retention looks at. Rows with an open delivery are passed over, not removed.
SELECT
    r.head, r.source, EXISTS (SELECT 1 FROM deliveries AS d WHERE d.receipt = r.head),
    length(r.headers) + length(r.body)
FROM receipts AS r
WHERE r.head > ?1 AND r.head < ?2
ORDER BY r.head
LIMIT ?3;
