-- One that was touched since the sweep read it, or has an open delivery, stays.
DELETE FROM lanes
WHERE route = ?1 AND source = ?2 AND object = ?3 AND touched < ?4
  AND NOT EXISTS (
      SELECT 1 FROM deliveries AS d WHERE d.route = ?1 AND d.source = ?2 AND d.lane = ?3
  );
