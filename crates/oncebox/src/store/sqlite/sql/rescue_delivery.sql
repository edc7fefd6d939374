-- The worker is lost: the attempt counts, and the next one is made alone.
UPDATE deliveries
SET
    state = iif(
        attempts - snoozes >= (SELECT max_attempts FROM routes WHERE no = ?2), 'dead', 'retrying'
    ),
    crashes = crashes + 1,
    lost = 1,
    due_at = ?4,
    lease_until = NULL,
    worker = NULL,
    detail = iif(
        attempts - snoozes >= (SELECT max_attempts FROM routes WHERE no = ?2),
        ?5 || ', and the attempts are spent',
        ?5
    )
WHERE receipt = ?1 AND route = ?2 AND state = 'processing' AND lease_until <= ?3
RETURNING source, created_at, lane, place, operation, epoch, attempts, replays, state;
