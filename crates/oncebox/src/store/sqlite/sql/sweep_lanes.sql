SELECT route, source, object, touched
FROM lanes
WHERE (route, source, object) > (?1, ?2, ?3)
ORDER BY route, source, object
LIMIT ?4;
