INSERT INTO oncebox.identities (source, key, receipt, content, last_seen)
SELECT $1::smallint, key, $3::uuid, $4::uuid, $5::integer
FROM unnest($2::uuid[]) AS k (key)
ON CONFLICT (source, key) DO NOTHING;
