INSERT INTO oncebox.rejected (
    id, source, received_at, reason, hint, sender, method, url, body_bytes, headers, body
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (id) DO NOTHING;
