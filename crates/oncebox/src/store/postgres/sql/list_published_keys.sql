SELECT url, allow_private, served, fresh_until, kept_at
FROM oncebox.published_keys
ORDER BY url, allow_private;
