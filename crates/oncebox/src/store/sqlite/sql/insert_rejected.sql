INSERT INTO rejected (
    head, tail, source, received_at, reason, hint, sender, method, url, body_bytes, headers, body
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT (head) DO NOTHING;
