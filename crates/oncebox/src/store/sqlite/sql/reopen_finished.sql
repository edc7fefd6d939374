-- Back at its place, guarded as its route guards now. The epoch goes on from where it was, so no
-- lease of before fits again.
INSERT INTO deliveries (
    receipt, route, source, state, created_at, due_at, epoch, replays, ignores_stale, lane, place,
    operation, detail
)
SELECT
    f.receipt, f.route, f.source, 'received', f.created_at, ?3, f.epoch, f.replays + 1, ?4,
    iif(f.laned OR t.ordered OR t.skip_stale, r.object, NULL),
    coalesce(r.version, -9223372036854775808), f.operation, f.detail
FROM finished AS f
JOIN receipts AS r ON r.head = f.receipt
JOIN routes AS t ON t.no = f.route
WHERE f.receipt = ?1 AND f.route = ?2;
