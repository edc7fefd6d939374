-- An open delivery: under the lease that is given, or whatever its state if none is.
SELECT
    source, created_at, lane, place, operation, epoch, attempts, failures, crashes, snoozes,
    replays, detail, tried_ms, lost
FROM deliveries
WHERE receipt = ?1 AND route = ?2
  AND (?3 IS NULL OR (state = 'processing' AND epoch = ?3 AND lease_until > ?4));
