-- Of an effect that is gone because a person said that it did not happen, one who began it says
-- that it did: nobody knows again. Each of those who gave no answer may have done it.
INSERT INTO oncebox.effects (key, kind, state, receipt, route, epoch, attempt, at, unknowns)
SELECT
    u.key, u.kind, 'unknown', u.receipt, u.route, u.epoch, u.attempt, statement_timestamp(),
    (SELECT count(*) FROM oncebox.unanswered AS o WHERE o.key = u.key)
FROM oncebox.unanswered AS u
WHERE u.key = $1 AND u.receipt = $2 AND u.route = $3 AND u.epoch = $4
ON CONFLICT (key) DO NOTHING;
