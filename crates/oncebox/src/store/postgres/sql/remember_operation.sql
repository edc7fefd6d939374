-- The newest of an operation that was processed, whichever was last. The operation is locked
-- before.
UPDATE oncebox.operations AS o
SET receipt = m.receipt, received_at = m.received_at
FROM (
    SELECT DISTINCT ON (route, key) route, key, receipt, received_at
    FROM unnest($1::smallint[], $2::uuid[], $3::uuid[], $4::timestamptz[])
        AS m (route, key, receipt, received_at)
    ORDER BY route, key, received_at DESC, receipt DESC
) AS m
CROSS JOIN LATERAL (
    SELECT k.ctid AS tid
    FROM oncebox.operations AS k
    WHERE k.route = m.route AND k.key = m.key
      AND (k.received_at IS NULL OR k.received_at <= m.received_at)
    OFFSET 0
) AS k
WHERE o.ctid = k.tid;
