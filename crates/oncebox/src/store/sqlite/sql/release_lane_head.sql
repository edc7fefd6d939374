-- Lets go what is next of an object once none of it is under a lease: on an ordered route the head
-- of the lane, should it be held; on another the lowest that is held. What waits for its operation
-- is not in the way, nor what has kept failing for long on a route that goes on.
UPDATE deliveries
SET state = 'received', reason = NULL, due_at = ?4
WHERE route = ?1 AND reason = 'order'
  AND receipt = iif(
      (SELECT ordered FROM routes WHERE no = ?1),
      (
          SELECT receipt FROM deliveries
          WHERE route = ?1 AND source = ?2 AND lane = ?3
            AND reason IS NOT 'same-operation'
            AND (state <> 'dead' OR (SELECT on_dead FROM routes WHERE no = ?1) = 'hold')
            AND (
                state <> 'retrying' OR retrying_since IS NULL
                OR (SELECT on_dead FROM routes WHERE no = ?1) = 'hold'
                OR retrying_since > ?4 - (SELECT hold_for_ms FROM routes WHERE no = ?1)
            )
          ORDER BY place, receipt
          LIMIT 1
      ),
      (
          SELECT receipt FROM deliveries
          WHERE route = ?1 AND source = ?2 AND lane = ?3 AND reason = 'order'
          ORDER BY place, receipt
          LIMIT 1
      )
  )
  AND NOT EXISTS (
      SELECT 1 FROM deliveries
      WHERE route = ?1 AND source = ?2 AND lane = ?3 AND state = 'processing'
  );
