-- Only where the receipt is still there: its counts go with it.
WITH added AS MATERIALIZED (
    SELECT a.*, k.source, k.event_type
    FROM unnest(
        $1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::timestamptz[]
    ) AS a (receipt, duplicates, conflicts, twins, first_at, last_at)
    CROSS JOIN LATERAL (
        SELECT k.source, k.event_type
        FROM oncebox.receipts AS k
        WHERE k.id = a.receipt AND k.id = ANY ($1)
        FOR KEY SHARE
    ) AS k
),
-- Twins and conflicts were counted with receipts of their own.
counted AS (
    INSERT INTO oncebox.arrival_deltas (minute, count, source, outcome, event_type)
    SELECT
        floor(extract(epoch FROM a.last_at) / 60)::integer, sum(a.duplicates), a.source,
        'duplicate', a.event_type
    FROM added AS a
    WHERE a.duplicates > 0
    GROUP BY 1, a.source, a.event_type
)
INSERT INTO oncebox.repeats AS r (receipt, duplicates, conflicts, twins, first_at, last_at)
SELECT a.receipt, a.duplicates, a.conflicts, a.twins, a.first_at, a.last_at
FROM added AS a
ORDER BY a.receipt
ON CONFLICT (receipt) DO UPDATE SET
    duplicates = r.duplicates + excluded.duplicates,
    conflicts = r.conflicts + excluded.conflicts,
    twins = r.twins + excluded.twins,
    first_at = least(r.first_at, excluded.first_at),
    last_at = greatest(r.last_at, excluded.last_at);
