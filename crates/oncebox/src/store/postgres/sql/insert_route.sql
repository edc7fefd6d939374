INSERT INTO oncebox.routes (no, name)
SELECT coalesce(max(no), 0) + 1, $1 FROM oncebox.routes
ON CONFLICT (name) DO NOTHING;
