INSERT INTO oncebox.secrets (source, no, fingerprint, first_used_at)
SELECT $1, coalesce(max(no), 0) + 1, $2, $3 FROM oncebox.secrets WHERE source = $1
ON CONFLICT (source, fingerprint) DO NOTHING;
