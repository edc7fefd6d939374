-- What a step of retention looks at. Rows with an open delivery are passed over, not removed,
-- unless it is held as twin or conflict.
SELECT
    r.id, r.source,
    EXISTS (
        SELECT 1 FROM oncebox.deliveries AS d
        WHERE d.receipt = r.id AND (d.reason IS NULL OR d.reason NOT IN ('twin', 'conflict'))
    ),
    (octet_length(r.headers) + octet_length(r.body))::bigint
FROM oncebox.receipts AS r
WHERE r.id > $1 AND r.id < $2
ORDER BY r.id
LIMIT $3;
