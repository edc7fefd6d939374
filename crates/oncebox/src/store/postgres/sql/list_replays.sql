SELECT
    id, created_at, who, why, receipts, routes, source, event_type, since, until, state, unrouted,
    fill, force, ignore_stale, rate, phase, planned, opened, passed, cursor_receipt, cursor_route,
    epoch, odd
FROM oncebox.replays
ORDER BY created_at DESC, id DESC
LIMIT $1;
