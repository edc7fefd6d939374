-- What is in the way of candidates. Run after their lanes and operations are locked, so that the
-- snapshot has what the last holder of those did. A lane may be long: leases are looked for in an
-- index of their own, and dead deliveries, told by what they are not, only where nothing else is in
-- the way. Of an operation, a later one under a lease is in the way as well. What waits for its
-- operation is not in the way of its object: the two could wait for each other. What was finished
-- is ordered so that only the index of operations fits, and looked for in the days within reach of
-- all candidates, from $9 to $10. On a route that goes on, one that has kept failing for `hold_for`
-- is not in the way of its object.
SELECT
    c.n,
    (
        SELECT l.applied
        FROM oncebox.lanes AS l
        WHERE l.route = c.route AND l.source = c.source AND l.object = c.lane
    ),
    EXISTS (
        SELECT 1 FROM oncebox.deliveries AS d
        WHERE d.route = c.route AND d.source = c.source AND d.lane = c.lane COLLATE "C"
          AND d.state = 'processing'
    ),
    earlier.is_open,
    NOT earlier.is_open AND EXISTS (
        SELECT 1 FROM oncebox.deliveries AS d
        WHERE d.route = c.route AND d.source = c.source AND d.lane = c.lane
          AND (d.place, d.receipt) < (c.place, c.receipt)
          AND d.state NOT IN ('received', 'processing', 'retrying', 'held')
    ),
    coalesce(
        (
            SELECT o.receipt
            FROM oncebox.operations AS o
            WHERE o.route = c.route AND o.key = c.operation
              AND o.received_at BETWEEN c.created_at - c.reach AND c.created_at + c.reach
        ),
        (
            SELECT f.receipt
            FROM oncebox.finished AS f
            WHERE f.route = c.route AND f.operation = c.operation AND f.state = 'processed'
              AND f.created_at BETWEEN c.created_at - c.reach AND c.created_at + c.reach
              AND f.receipt BETWEEN $9 AND $10
            ORDER BY f.created_at
            LIMIT 1
        )
    ),
    same.is_open,
    NOT same.is_open AND EXISTS (
        SELECT 1 FROM oncebox.deliveries AS d
        WHERE d.route = c.route AND d.operation = c.operation AND d.receipt < c.receipt
          AND d.state NOT IN ('received', 'processing', 'retrying', 'held')
          AND d.created_at BETWEEN c.created_at - c.reach AND c.created_at + c.reach
    )
FROM (
    SELECT receipt, route, source, lane, place, operation, created_at, n,
        reach * interval '1 millisecond' AS reach,
        statement_timestamp() - hold_for * interval '1 millisecond' AS passed
    FROM unnest(
        $1::uuid[], $2::smallint[], $3::smallint[], $4::text[], $5::bigint[], $6::uuid[],
        $7::timestamptz[], $8::bigint[], $11::bigint[]
    ) WITH ORDINALITY
        AS c (receipt, route, source, lane, place, operation, created_at, reach, hold_for, n)
) AS c
CROSS JOIN LATERAL (
    SELECT EXISTS (
        SELECT 1 FROM oncebox.deliveries AS d
        WHERE d.route = c.route AND d.source = c.source AND d.lane = c.lane
          AND (d.place, d.receipt) < (c.place, c.receipt)
          AND d.state <> 'dead'
          AND d.reason IS DISTINCT FROM 'same-operation'
          AND (d.retrying_since <= c.passed) IS NOT TRUE
    ) AS is_open
    OFFSET 0
) AS earlier
CROSS JOIN LATERAL (
    SELECT EXISTS (
        SELECT 1 FROM oncebox.deliveries AS d
        WHERE d.route = c.route AND d.operation = c.operation AND d.receipt <> c.receipt
          AND (d.receipt < c.receipt OR d.state = 'processing')
          AND d.state <> 'dead'
          AND d.created_at BETWEEN c.created_at - c.reach AND c.created_at + c.reach
    ) AS is_open
    OFFSET 0
) AS same;
