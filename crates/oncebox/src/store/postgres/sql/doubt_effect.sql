-- Writes down that nobody knows what came of an effect. It is locked by this transaction. One that
-- is given up now is unknown from now on; of the others nobody knows since when.
UPDATE oncebox.effects
SET
    state = 'unknown',
    unknowns = $2,
    at = CASE WHEN $3 THEN statement_timestamp() ELSE at END
WHERE key = $1;
