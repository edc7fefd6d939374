INSERT INTO oncebox.replays (
    id, created_at, who, why, receipts, routes, source, event_type, since, until, state, unrouted,
    odd, fill, force, ignore_stale, rate, phase, planned
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19);
