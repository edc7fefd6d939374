SELECT id, source, received_at, reason, hint, sender, method, url, body_bytes, headers, body
FROM oncebox.rejected
WHERE id = $1;
