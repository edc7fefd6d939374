SELECT route, name, touched
FROM outbox_groups
WHERE (route, name) > (?1, ?2)
ORDER BY route, name
LIMIT ?3;
