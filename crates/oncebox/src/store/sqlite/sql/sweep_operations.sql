SELECT route, key, touched
FROM operations
WHERE (route, key) > (?1, ?2)
ORDER BY route, key
LIMIT ?3;
