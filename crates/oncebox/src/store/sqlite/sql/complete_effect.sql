UPDATE effects
SET state = 'done', result = ?5, at = ?6
WHERE key = ?1 AND state = 'started' AND receipt = ?2 AND route = ?3 AND epoch = ?4;
