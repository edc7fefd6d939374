UPDATE effects
SET state = 'done', result = ?2, at = ?3, unknowns = ?4
WHERE key = ?1 AND state <> 'done';
