-- The event that came first with this content is as young as its last twin.
UPDATE identities SET last_seen = ?3
WHERE source = ?1 AND last_seen < ?3
  AND key = (SELECT g.identity FROM guards AS g WHERE g.source = ?1 AND g.key = ?2);
