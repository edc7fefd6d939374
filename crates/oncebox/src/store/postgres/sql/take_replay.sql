-- The oldest job that nobody drives, or the one that is named, should nobody drive it.
WITH free AS MATERIALIZED (
    SELECT r.id AS taken
    FROM oncebox.replays AS r
    WHERE r.phase = 'running'
      AND (r.lease_until IS NULL OR r.lease_until <= statement_timestamp())
      AND ($1::uuid IS NULL OR r.id = $1)
    ORDER BY r.created_at, r.id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
UPDATE oncebox.replays
SET
    epoch = (((epoch >> 20) + 1) << 20) | floor(random() * 1048576)::bigint,
    lease_until = statement_timestamp() + $2::bigint * interval '1 millisecond'
FROM free
WHERE id = taken
RETURNING
    id, created_at, who, why, receipts, routes, source, event_type, since, until, state, unrouted,
    fill, force, ignore_stale, rate, phase, planned, opened, passed, cursor_receipt, cursor_route,
    epoch, odd;
