UPDATE deliveries
SET
    state = 'received',
    reason = NULL,
    due_at = ?3,
    attempts = 0,
    failures = 0,
    crashes = 0,
    snoozes = 0,
    replays = replays + 1,
    lost = 0,
    ignores_stale = ?4,
    hastened_at = NULL
WHERE receipt = ?1 AND route = ?2 AND state IN ('dead', 'held');
