-- Begins again what nobody knows the outcome of. What was said of it too late stays.
UPDATE effects
SET
    state = 'started', receipt = ?2, tail = ?3, route = ?4, epoch = ?5, attempt = ?6, at = ?7,
    unknowns = ?8
WHERE key = ?1 AND state <> 'done';
