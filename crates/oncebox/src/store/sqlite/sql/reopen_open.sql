-- Guarded as its route guards now, and back at its place.
UPDATE deliveries AS d
SET
    state = 'received',
    reason = NULL,
    effect = NULL,
    due_at = ?3,
    attempts = 0,
    failures = 0,
    crashes = 0,
    snoozes = 0,
    tried_ms = 0,
    failed_at = NULL,
    retrying_since = NULL,
    replays = replays + 1,
    lost = 0,
    ignores_stale = ?4,
    ignores_order = 0,
    hastened_at = NULL,
    lane = iif(t.ordered OR t.skip_stale, r.object, d.lane)
FROM routes AS t, receipts AS r
WHERE d.receipt = ?1 AND d.route = ?2 AND d.state IN ('dead', 'held')
  AND t.no = d.route AND r.head = d.receipt;
