UPDATE deliveries
SET state = 'dead', failures = failures + 1, lease_until = NULL, worker = NULL, detail = ?5
WHERE receipt = ?1 AND route = ?2 AND state = 'processing' AND epoch = ?3 AND lease_until > ?4
RETURNING source, created_at, lane, place, operation, epoch, attempts, replays;
