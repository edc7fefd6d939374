-- The unique constraint decides which event came first with its content.
INSERT INTO guards (source, key, head, tail, identity, type, last_seen)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (source, key) DO NOTHING;
