-- What a step of retention looks at. Rows with an open delivery are passed over, not removed,
-- unless it is held as twin or conflict.
SELECT
    r.head, r.source,
    EXISTS (
        SELECT 1 FROM deliveries AS d
        WHERE d.receipt = r.head
          AND (d.reason IS NULL OR d.reason NOT IN ('twin', 'conflict'))
    ),
    length(r.headers) + length(r.body)
FROM receipts AS r
WHERE r.head > ?1 AND r.head < ?2
ORDER BY r.head
LIMIT ?3;
