-- The last processed delivery of an operation. The operation is locked before.
UPDATE oncebox.operations AS o
SET receipt = m.receipt, received_at = m.received_at
FROM unnest($1::smallint[], $2::uuid[], $3::uuid[], $4::timestamptz[])
    AS m (route, key, receipt, received_at)
CROSS JOIN LATERAL (
    SELECT k.ctid AS tid
    FROM oncebox.operations AS k
    WHERE k.route = m.route AND k.key = m.key
    OFFSET 0
) AS k
WHERE o.ctid = k.tid;
