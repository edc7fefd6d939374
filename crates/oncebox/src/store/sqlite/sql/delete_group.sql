-- One that was touched since the sweep read it, or has an open message, stays: numbers must not
-- begin again behind it.
DELETE FROM outbox_groups
WHERE route = ?1 AND name = ?2 AND touched < ?3
  AND NOT EXISTS (
      SELECT 1 FROM deliveries AS d
      JOIN routes AS t ON t.no = d.route
      JOIN sources AS s ON s.name = t.name
      WHERE d.route = ?1 AND d.source = s.no AND d.lane = ?2
  );
