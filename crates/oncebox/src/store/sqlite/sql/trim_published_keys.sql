DELETE FROM published_keys
WHERE (url, allow_private) IN (
    SELECT url, allow_private FROM published_keys
    ORDER BY kept_at DESC, url, allow_private
    LIMIT -1 OFFSET ?1
);
