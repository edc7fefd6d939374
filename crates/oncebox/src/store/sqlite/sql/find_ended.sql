-- Whether an attempt that cannot be ended was ended the same way before, by a call whose answer
-- was lost. One that was returned leaves no trace but the epoch it had.
SELECT EXISTS (
        SELECT 1 FROM finished
        WHERE receipt = ?1 AND route = ?2 AND epoch = ?3 AND took_ms IS NOT NULL
          AND coalesce(reason, state) = ?4
    )
    OR EXISTS (
        SELECT 1 FROM attempts
        WHERE receipt = ?1 AND route = ?2 AND epoch = ?3 AND outcome = ?4
    )
    OR ?4 = 'damaged' AND EXISTS (
        SELECT 1 FROM deliveries
        WHERE receipt = ?1 AND route = ?2 AND epoch = ?3 AND reason = 'damaged'
    )
    OR ?4 = 'returned' AND EXISTS (
        SELECT 1 FROM deliveries
        WHERE receipt = ?1 AND route = ?2 AND epoch = ?3
          AND state IN ('received', 'retrying', 'held')
          AND NOT EXISTS (
              SELECT 1 FROM attempts WHERE receipt = ?1 AND route = ?2 AND epoch = ?3
          )
    );
