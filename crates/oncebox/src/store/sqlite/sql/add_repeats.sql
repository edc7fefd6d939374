INSERT INTO repeats (receipt, duplicates, conflicts, twins, first_at, last_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (receipt) DO UPDATE SET
    duplicates = duplicates + excluded.duplicates,
    conflicts = conflicts + excluded.conflicts,
    twins = twins + excluded.twins,
    first_at = min(first_at, excluded.first_at),
    last_at = max(last_at, excluded.last_at);
