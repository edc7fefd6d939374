INSERT INTO oncebox.identities (source, key, receipt, content, last_seen)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (source, key) DO NOTHING;
