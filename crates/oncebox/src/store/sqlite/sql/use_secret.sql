UPDATE secrets
SET last_used_at = max(coalesce(last_used_at, ?3), ?3)
WHERE source = ?1 AND no = ?2;
