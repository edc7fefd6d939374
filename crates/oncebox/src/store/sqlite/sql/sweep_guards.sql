SELECT source, key, head, last_seen
FROM guards
WHERE (source, key) > (?1, ?2)
ORDER BY source, key
LIMIT ?3;
