INSERT INTO oncebox.sources (no, name)
SELECT coalesce(max(no), 0) + 1, $1 FROM oncebox.sources
ON CONFLICT (name) DO NOTHING;
