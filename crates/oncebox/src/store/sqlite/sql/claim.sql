-- The attempt is counted here. A suspect that is alone is marked so.
UPDATE deliveries
SET
    state = 'processing',
    attempts = attempts + 1,
    epoch = ?3,
    lease_until = ?4,
    worker = ?5,
    lost = iif(?6, 3, lost)
WHERE receipt = ?1 AND route = ?2 AND state IN ('received', 'retrying');
