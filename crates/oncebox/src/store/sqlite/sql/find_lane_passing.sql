-- What an operator let pass the order of its lane, and waits for a lease only that is gone now.
SELECT receipt FROM deliveries
WHERE route = ?1 AND source = ?2 AND lane = ?3 AND ignores_order AND reason = 'order'
  AND NOT EXISTS (
      SELECT 1 FROM deliveries
      WHERE route = ?1 AND source = ?2 AND lane = ?3 AND state = 'processing'
  );
