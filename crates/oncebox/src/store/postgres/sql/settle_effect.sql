UPDATE oncebox.effects
SET state = 'done', result = $2, at = statement_timestamp(), unknowns = $3
WHERE key = $1;
