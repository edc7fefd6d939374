-- A guard seen again since the sweep read it, or with an open delivery, stays.
DELETE FROM guards
WHERE source = ?1 AND key = ?2 AND last_seen < ?3
  AND NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.receipt = guards.head);
