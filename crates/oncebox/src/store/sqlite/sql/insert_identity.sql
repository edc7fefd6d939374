-- The unique constraint decides who was first.
INSERT INTO identities (source, key, head, tail, content, last_seen)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (source, key) DO NOTHING;
