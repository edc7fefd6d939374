UPDATE effects SET state = 'unknown', at = ?2, unknowns = ?3 WHERE key = ?1 AND state <> 'done';
