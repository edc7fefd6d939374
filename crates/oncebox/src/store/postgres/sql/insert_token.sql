INSERT INTO oncebox.tokens (id, name, hash, scopes, created_at, expires_at, revoked_at)
VALUES ($1, $2, $3, $4, $5, $6, $7);
