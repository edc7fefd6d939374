-- At most one write per identity and day, however often it repeats.
UPDATE identities SET last_seen = ?3 WHERE source = ?1 AND key = ?2 AND last_seen < ?3;
