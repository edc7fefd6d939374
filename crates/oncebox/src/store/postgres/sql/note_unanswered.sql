-- Remembers whoever is at an effect, before it is taken over or settled. It is locked by this
-- transaction.
INSERT INTO oncebox.unanswered (key, receipt, route, epoch, attempt, kind, at)
SELECT e.key, e.receipt, e.route, e.epoch, e.attempt, e.kind, statement_timestamp()
FROM oncebox.effects AS e
WHERE e.key = $1
ON CONFLICT (key, receipt, route, epoch) DO NOTHING;
