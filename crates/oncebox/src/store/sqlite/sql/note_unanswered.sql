-- Remembers whoever is at an effect, before it is taken over or settled.
INSERT INTO unanswered (key, receipt, tail, route, epoch, attempt, kind, at)
SELECT key, receipt, tail, route, epoch, attempt, kind, ?2 FROM effects WHERE key = ?1
ON CONFLICT (key, receipt, route, epoch) DO NOTHING;
