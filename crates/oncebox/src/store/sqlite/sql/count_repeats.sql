-- Only where the receipt is still there: it says the source and the type.
INSERT INTO arrival_deltas (minute, source, outcome, event_type, count)
SELECT ?2, r.source, 'duplicate', r.event_type, ?3
FROM receipts AS r
WHERE r.head = ?1 AND ?3 > 0;
