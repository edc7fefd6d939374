-- Only by the attempt that did it.
UPDATE effects
SET result = ?5
WHERE key = ?1 AND state = 'done' AND receipt = ?2 AND route = ?3 AND epoch = ?4;
