-- The identity is that of the promoted body from now on.
INSERT INTO identities (source, key, head, tail, content, last_seen)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (source, key) DO UPDATE SET
    head = excluded.head,
    tail = excluded.tail,
    content = excluded.content,
    last_seen = max(last_seen, excluded.last_seen);
