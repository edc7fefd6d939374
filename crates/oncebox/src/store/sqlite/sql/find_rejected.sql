SELECT head, tail, source, received_at, reason, hint, sender, method, url, body_bytes, headers, body
FROM rejected
WHERE head = ?1 AND tail = ?2;
