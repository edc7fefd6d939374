-- What is in the way of candidates. Run after their lanes and operations are locked, so that the
-- snapshot has what the last holder of those did. An earlier dead delivery is looked for only
-- where nothing else is in the way: a lane may be long. Of an operation, a later one under a lease
-- is in the way as well. What waits for its operation is not in the way of its object: the two
-- could wait for each other.
SELECT
    c.n,
    l.applied,
    EXISTS (
        SELECT 1 FROM oncebox.deliveries AS d
        WHERE d.route = c.route AND d.source = c.source AND d.lane = c.lane
          AND d.state = 'processing'
    ),
    earlier.is_open,
    NOT earlier.is_open AND EXISTS (
        SELECT 1 FROM oncebox.deliveries AS d
        WHERE d.route = c.route AND d.source = c.source AND d.lane = c.lane
          AND (d.place, d.receipt) < (c.place, c.receipt)
          AND d.state = 'dead'
    ),
    o.receipt,
    EXISTS (
        SELECT 1 FROM oncebox.deliveries AS d
        WHERE d.route = c.route AND d.operation = c.operation AND d.receipt <> c.receipt
          AND (d.receipt < c.receipt OR d.state = 'processing')
          AND d.state <> 'dead'
          AND d.created_at
              BETWEEN c.created_at - c.reach * interval '1 millisecond'
              AND c.created_at + c.reach * interval '1 millisecond'
    ),
    EXISTS (
        SELECT 1 FROM oncebox.deliveries AS d
        WHERE d.route = c.route AND d.operation = c.operation AND d.receipt < c.receipt
          AND d.state = 'dead'
          AND d.created_at
              BETWEEN c.created_at - c.reach * interval '1 millisecond'
              AND c.created_at + c.reach * interval '1 millisecond'
    )
FROM unnest(
    $1::uuid[], $2::smallint[], $3::smallint[], $4::text[], $5::bigint[], $6::uuid[],
    $7::timestamptz[], $8::bigint[]
) WITH ORDINALITY AS c (receipt, route, source, lane, place, operation, created_at, reach, n)
CROSS JOIN LATERAL (
    SELECT EXISTS (
        SELECT 1 FROM oncebox.deliveries AS d
        WHERE d.route = c.route AND d.source = c.source AND d.lane = c.lane
          AND (d.place, d.receipt) < (c.place, c.receipt)
          AND d.state <> 'dead'
          AND d.reason IS DISTINCT FROM 'same-operation'
    ) AS is_open
) AS earlier
LEFT JOIN oncebox.lanes AS l
    ON l.route = c.route AND l.source = c.source AND l.object = c.lane
LEFT JOIN oncebox.operations AS o
    ON o.route = c.route AND o.key = c.operation
    AND o.received_at
        BETWEEN c.created_at - c.reach * interval '1 millisecond'
        AND c.created_at + c.reach * interval '1 millisecond';
