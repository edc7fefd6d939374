-- What is in the way of a candidate. Of its object: the watermark, a lease, what is earlier and
-- open or dead. Of its operation: what was processed, what is open or dead. A lease that a later
-- one of the operation is under is in the way as well. What waits for its operation is not in the
-- way of its object: the two could wait for each other. Neither is, on a route that goes on, what
-- has kept failing since ?9.
SELECT
    (SELECT applied FROM lanes WHERE route = ?1 AND source = ?3 AND object = ?4),
    EXISTS (
        SELECT 1 FROM deliveries
        WHERE route = ?1 AND source = ?3 AND lane = ?4 AND state = 'processing' AND receipt <> ?2
    ),
    EXISTS (
        SELECT 1 FROM deliveries
        WHERE route = ?1 AND source = ?3 AND lane = ?4 AND (place, receipt) < (?5, ?2)
          AND state <> 'dead' AND reason IS NOT 'same-operation'
          AND (?9 IS NULL OR retrying_since IS NULL OR retrying_since > ?9)
    ),
    EXISTS (
        SELECT 1 FROM deliveries
        WHERE route = ?1 AND source = ?3 AND lane = ?4 AND (place, receipt) < (?5, ?2)
          AND state = 'dead'
    ),
    coalesce(o.head, done.receipt),
    iif(o.head IS NULL, (SELECT tail FROM receipts WHERE head = done.receipt), o.tail),
    EXISTS (
        SELECT 1 FROM deliveries
        WHERE route = ?1 AND operation = ?6 AND receipt <> ?2
          AND (receipt < ?2 OR state = 'processing')
          AND abs(created_at - ?7) <= ?8
          AND state <> 'dead'
    ),
    EXISTS (
        SELECT 1 FROM deliveries
        WHERE route = ?1 AND operation = ?6 AND receipt < ?2
          AND abs(created_at - ?7) <= ?8
          AND state = 'dead'
    )
FROM (
    SELECT (
        SELECT receipt FROM finished
        WHERE route = ?1 AND operation = ?6 AND state = 'processed'
          AND created_at BETWEEN ?7 - ?8 AND ?7 + ?8
        LIMIT 1
    ) AS receipt
) AS done
LEFT JOIN operations AS o
    ON o.route = ?1 AND o.key = ?6 AND o.head IS NOT NULL AND abs(o.received_at - ?7) <= ?8;
