-- An identity seen again since the sweep read it, or with an open delivery, stays.
DELETE FROM identities
WHERE source = ?1 AND key = ?2 AND last_seen < ?3
  AND NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.receipt = identities.head);
