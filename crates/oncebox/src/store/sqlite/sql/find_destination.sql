-- A destination is there if both its source and its route are.
SELECT s.no, t.no, t.born_as
FROM sources AS s
JOIN routes AS t ON t.name = s.name
WHERE s.name = ?1;
