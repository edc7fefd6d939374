INSERT INTO oncebox.repeats AS r (receipt, duplicates, conflicts, twins, first_at, last_at)
SELECT *
FROM unnest(
    $1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::timestamptz[]
)
ON CONFLICT (receipt) DO UPDATE SET
    duplicates = r.duplicates + excluded.duplicates,
    conflicts = r.conflicts + excluded.conflicts,
    twins = r.twins + excluded.twins,
    first_at = least(r.first_at, excluded.first_at),
    last_at = greatest(r.last_at, excluded.last_at);
