-- Held deliveries after one of them, with the rules of their routes.
SELECT
    r.head, r.tail, d.route, d.source, d.created_at, d.lane, d.place, d.operation,
    d.ignores_stale, d.ignores_order, t.base_ms, t.cap_ms, t.longest_wait_ms, t.same_operation_ms,
    t.max_attempts, t.max_snoozes, t.ordered, t.skip_stale, t.on_dead, t.pulled,
    t.budget_ms, t.hold_for_ms
FROM deliveries AS d
JOIN receipts AS r ON r.head = d.receipt
JOIN routes AS t ON t.no = d.route
WHERE d.state = 'held' AND d.reason IN ('order', 'same-operation')
  AND (d.route, d.receipt) > (?1, ?2)
ORDER BY d.route, d.receipt
LIMIT ?3;
