SELECT opened_at, until, until > ?2, paired, last
FROM pairings
WHERE source = ?1 AND until IS NOT NULL;
