DELETE FROM oncebox.published_keys
WHERE (url, allow_private) IN (
    SELECT url, allow_private FROM oncebox.published_keys
    ORDER BY kept_at DESC, url, allow_private
    OFFSET $1
);
