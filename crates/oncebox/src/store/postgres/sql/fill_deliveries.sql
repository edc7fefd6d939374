-- Deliveries that should have been made when their events were recorded. Receipts are locked
-- before.
WITH made AS (
    INSERT INTO oncebox.deliveries (
        receipt, route, source, state, created_at, due_at, lane, place, ignores_stale
    )
    SELECT
        r.id, t.no, r.source, 'received', r.received_at, statement_timestamp(),
        CASE WHEN t.ordered OR t.skip_stale THEN r.object END,
        coalesce(r.version, -9223372036854775808), $3
    FROM unnest($1::uuid[], $2::smallint[]) AS w (receipt, route)
    JOIN oncebox.receipts AS r ON r.id = w.receipt
    JOIN oncebox.routes AS t ON t.no = w.route
    WHERE NOT EXISTS (
        SELECT 1 FROM oncebox.finished AS f
        WHERE f.receipt = w.receipt AND f.route = w.route
    )
    ON CONFLICT (receipt, route) DO NOTHING
    RETURNING receipt, route
),
-- Only where it changes something: the whole row is written.
routed AS (
    UPDATE oncebox.receipts AS r
    SET routes = 1
    FROM (SELECT DISTINCT receipt FROM made) AS m
    WHERE r.id = m.receipt AND r.routes = 0
)
SELECT receipt, route FROM made;
