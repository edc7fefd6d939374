INSERT INTO pairings (source, opened_at, until)
VALUES (?1, ?2, ?3)
ON CONFLICT (source) DO UPDATE SET
    opened_at = excluded.opened_at,
    until = excluded.until,
    paired = NULL;
