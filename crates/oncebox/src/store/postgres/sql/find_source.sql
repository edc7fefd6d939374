-- By its name, or else by one that it had before.
SELECT t.no, t.name
FROM oncebox.sources AS t
WHERE t.name = $1
   OR t.no = (SELECT f.source FROM oncebox.former_source_names AS f WHERE f.name = $1)
ORDER BY t.name = $1 DESC
LIMIT 1;
