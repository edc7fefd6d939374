INSERT INTO oncebox.migrations (version, name) VALUES ($1, $2);
