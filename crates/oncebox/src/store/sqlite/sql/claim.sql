-- The attempt is counted here.
UPDATE deliveries
SET
    state = 'processing',
    attempts = attempts + 1,
    epoch = ?3,
    lease_until = ?4,
    worker = ?5
WHERE receipt = ?1 AND route = ?2 AND state IN ('received', 'retrying');
