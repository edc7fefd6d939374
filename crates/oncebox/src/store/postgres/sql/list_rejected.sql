SELECT id, source, received_at, reason, hint, sender, method, url, body_bytes
FROM oncebox.rejected
WHERE id BETWEEN $1 AND $2
  AND ($3::smallint IS NULL OR source = $3)
ORDER BY id DESC
LIMIT $4;
