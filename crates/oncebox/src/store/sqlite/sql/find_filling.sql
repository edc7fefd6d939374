-- A route, or the one that is named, whose open deliveries have not all got their objects.
SELECT no, name, fill_after FROM routes
WHERE fill_after IS NOT NULL AND (?1 IS NULL OR no = ?1)
ORDER BY no
LIMIT 1;
