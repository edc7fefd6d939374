-- The attempt is counted here. Later claims have a greater epoch; its random end tells claims
-- apart that a database gave out before and after it was restored.
UPDATE deliveries
SET
    state = 'processing',
    attempts = attempts + 1,
    epoch = (((epoch >> 20) + 1) << 20) | (random() & 1048575),
    lease_until = ?3,
    worker = ?4,
    lost = 0
WHERE receipt = ?1 AND route = ?2 AND state IN ('received', 'retrying')
RETURNING epoch;
