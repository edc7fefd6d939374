-- Checked again where it is decided. What an open delivery did, or a message that is still on its
-- way (?3), stays.
DELETE FROM effects
WHERE key = ?1 AND state = 'done' AND at < ?2
  AND NOT EXISTS (
      SELECT 1 FROM deliveries AS d WHERE d.receipt = effects.receipt AND d.route = effects.route
  )
  AND NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.receipt = ?3);
