-- Only where the receipt is still there: its counts go with it.
INSERT INTO oncebox.repeats AS r (receipt, duplicates, conflicts, twins, first_at, last_at)
SELECT receipt, duplicates, conflicts, twins, first_at, last_at
FROM unnest(
    $1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::timestamptz[]
) AS a (receipt, duplicates, conflicts, twins, first_at, last_at)
WHERE EXISTS (SELECT 1 FROM oncebox.receipts AS k WHERE k.id = a.receipt)
ORDER BY receipt
ON CONFLICT (receipt) DO UPDATE SET
    duplicates = r.duplicates + excluded.duplicates,
    conflicts = r.conflicts + excluded.conflicts,
    twins = r.twins + excluded.twins,
    first_at = least(r.first_at, excluded.first_at),
    last_at = greatest(r.last_at, excluded.last_at);
