SELECT id, name, hash, scopes, created_at, expires_at, revoked_at
FROM oncebox.tokens
ORDER BY created_at DESC, id;
