-- A route, or the one that is named, whose open deliveries have not all got their objects. Another
-- node may be at one.
SELECT no, name, fill_after FROM oncebox.routes
WHERE fill_after IS NOT NULL AND ($1::smallint IS NULL OR no = $1)
ORDER BY no
LIMIT 1
FOR UPDATE SKIP LOCKED;
