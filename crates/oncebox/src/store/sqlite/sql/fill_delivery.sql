-- A delivery that should have been made when the event was recorded.
INSERT INTO deliveries (
    receipt, route, source, state, created_at, due_at, lane, place, ignores_stale
)
SELECT
    r.head, t.no, r.source, 'received', r.received_at, ?4,
    iif(t.ordered OR t.skip_stale, r.object, NULL), coalesce(r.version, -9223372036854775808), ?5
FROM receipts AS r
JOIN routes AS t ON t.no = ?3
WHERE r.head = ?1 AND r.tail = ?2;
