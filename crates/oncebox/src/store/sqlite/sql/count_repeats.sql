-- Only where the receipt is still there: it says the source and the type.
INSERT INTO arrival_deltas (minute, source, outcome, event_type, count)
SELECT ?2, r.source, o.outcome, r.event_type, o.count
FROM receipts AS r
CROSS JOIN (
    SELECT 'duplicate' AS outcome, ?3 AS count
    UNION ALL SELECT 'conflict', ?4
    UNION ALL SELECT 'twin', ?5
) AS o
WHERE r.head = ?1 AND o.count > 0;
