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
    JOIN oncebox.routes AS t ON t.no = w.route
    CROSS JOIN LATERAL (
        SELECT r.id, r.source, r.received_at, r.object, r.version
        FROM oncebox.receipts AS r
        WHERE r.id = w.receipt AND r.id = ANY ($1)
        OFFSET 0
    ) AS r
    WHERE NOT EXISTS (
        SELECT 1 FROM oncebox.finished AS f
        WHERE f.receipt = w.receipt AND f.receipt = ANY ($1) AND f.route = w.route
        OFFSET 0
    )
    ON CONFLICT (receipt, route) DO NOTHING
    RETURNING receipt, route
),
-- Only where it changes something: the whole row is written.
routed AS (
    UPDATE oncebox.receipts
    SET routes = 1
    WHERE id = ANY ($1) AND id = ANY (ARRAY(SELECT receipt FROM made)) AND routes = 0
)
SELECT receipt, route FROM made;
