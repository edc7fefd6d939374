-- The oldest job that nobody drives, or the one that is named, should nobody drive it.
UPDATE replays
SET epoch = (((epoch >> 20) + 1) << 20) | (random() & 1048575), lease_until = ?3
WHERE id = (
    SELECT id FROM replays
    WHERE phase = 'running'
      AND (lease_until IS NULL OR lease_until <= ?2)
      AND (?1 IS NULL OR id = ?1)
    ORDER BY created_at, id
    LIMIT 1
)
RETURNING
    id, created_at, who, why, receipts, routes, source, event_type, since, until, state, unrouted,
    fill, force, ignore_stale, rate, phase, planned, opened, passed, cursor_head, cursor_tail,
    cursor_route, epoch, odd;
