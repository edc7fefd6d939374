-- At most one write per guard and day, however often its content repeats.
UPDATE guards SET last_seen = ?3 WHERE source = ?1 AND key = ?2 AND last_seen < ?3;
