SELECT head, tail, source, received_at, reason, hint, sender, method, url, body_bytes
FROM rejected
WHERE head BETWEEN ?1 AND ?2
  AND (?3 IS NULL OR source = ?3)
ORDER BY head DESC
LIMIT ?4;
