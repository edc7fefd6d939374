-- Begins again what nobody knows the outcome of. What was said of it too late stays. It is locked
-- by this transaction.
UPDATE oncebox.effects
SET
    state = 'started',
    receipt = $2,
    route = $3,
    epoch = $4,
    attempt = $5,
    unknowns = $6,
    at = statement_timestamp()
WHERE key = $1;
