-- By its name, or else by one that it had before.
SELECT t.no, t.name
FROM oncebox.routes AS t
WHERE t.name = $1
   OR t.no = (SELECT f.route FROM oncebox.former_route_names AS f WHERE f.name = $1)
ORDER BY t.name = $1 DESC
LIMIT 1;
