-- Content that came again under its own id, signed anew by its provider, and types that a body came
-- under for the first time.
INSERT INTO oncebox.guards (source, key, receipt, identity, type, last_seen)
SELECT source, key, receipt, identity, type, last_seen
FROM unnest($1::smallint[], $2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::integer[])
    AS g (source, key, receipt, identity, type, last_seen)
ORDER BY source, key
ON CONFLICT (source, key) DO NOTHING;
