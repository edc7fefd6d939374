-- No lease did it: a person says that it happened. Whoever was at it last is remembered apart.
UPDATE effects
SET state = 'done', epoch = 0, result = ?2, at = ?3, unknowns = ?4
WHERE key = ?1 AND state <> 'done';
