-- Of an effect that is gone because a person said that it did not happen, one who began it says
-- that it did: nobody knows again. Each of those who gave no answer may have done it.
INSERT INTO effects (key, kind, state, receipt, tail, route, epoch, attempt, at, unknowns)
SELECT
    u.key, u.kind, 'unknown', u.receipt, u.tail, u.route, u.epoch, u.attempt, ?6,
    (SELECT count(*) FROM unanswered AS o WHERE o.key = u.key)
FROM unanswered AS u
WHERE u.key = ?1 AND u.receipt = ?2 AND u.tail = ?3 AND u.route = ?4 AND u.epoch = ?5
ON CONFLICT (key) DO NOTHING;
