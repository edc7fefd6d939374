SELECT version, applied_at FROM migrations ORDER BY version;
