INSERT INTO published_keys (url, allow_private, served, fresh_until, kept_at)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (url, allow_private) DO UPDATE
SET served = excluded.served, fresh_until = excluded.fresh_until, kept_at = excluded.kept_at;
