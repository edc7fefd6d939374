-- The last processed delivery of an operation. The operation is locked before.
UPDATE oncebox.operations AS o
SET receipt = m.receipt, received_at = m.received_at
FROM unnest($1::smallint[], $2::uuid[], $3::uuid[], $4::timestamptz[])
    AS m (route, key, receipt, received_at)
WHERE o.route = m.route AND o.key = m.key;
