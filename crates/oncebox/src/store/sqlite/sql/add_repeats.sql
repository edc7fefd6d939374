-- Only where the receipt is still there: its counts go with it.
INSERT INTO repeats (receipt, duplicates, conflicts, twins, first_at, last_at)
SELECT ?1, ?2, ?3, ?4, ?5, ?6
WHERE EXISTS (SELECT 1 FROM receipts WHERE head = ?1)
ON CONFLICT (receipt) DO UPDATE SET
    duplicates = duplicates + excluded.duplicates,
    conflicts = conflicts + excluded.conflicts,
    twins = twins + excluded.twins,
    first_at = min(first_at, excluded.first_at),
    last_at = max(last_at, excluded.last_at);
