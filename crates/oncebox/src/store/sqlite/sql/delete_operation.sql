-- One that was touched since the sweep read it, or has an open delivery, stays.
DELETE FROM operations
WHERE route = ?1 AND key = ?2 AND touched < ?3
  AND NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.route = ?1 AND d.operation = ?2);
