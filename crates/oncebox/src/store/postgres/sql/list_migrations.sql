SELECT version, applied_at FROM oncebox.migrations ORDER BY version;
