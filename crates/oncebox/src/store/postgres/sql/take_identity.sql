-- The identity is that of the promoted body from now on.
INSERT INTO oncebox.identities AS i (source, key, receipt, content, last_seen)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (source, key) DO UPDATE SET
    receipt = excluded.receipt,
    content = excluded.content,
    last_seen = greatest(i.last_seen, excluded.last_seen);
