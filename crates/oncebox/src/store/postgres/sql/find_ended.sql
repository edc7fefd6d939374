-- Whether attempts that cannot be ended were ended the same way before, by a commit whose outcome
-- nobody heard of. One that was returned leaves no trace but the epoch it had.
SELECT e.n
FROM unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::text[])
    WITH ORDINALITY AS e (receipt, route, lease, next, n)
WHERE EXISTS (
        SELECT 1 FROM oncebox.finished AS f
        WHERE f.receipt = e.receipt AND f.receipt = ANY ($1)
          AND f.route = e.route AND f.epoch = e.lease
          AND f.took_ms IS NOT NULL
          AND coalesce(f.reason, f.state) = e.next
    )
    OR EXISTS (
        SELECT 1 FROM oncebox.attempts AS a
        WHERE a.receipt = e.receipt AND a.receipt = ANY ($1)
          AND a.route = e.route AND a.epoch = e.lease
          AND a.outcome = e.next
    )
    OR e.next = 'damaged' AND EXISTS (
        SELECT 1 FROM oncebox.deliveries AS d
        WHERE d.receipt = e.receipt AND d.route = e.route AND d.epoch = e.lease
          AND d.reason = 'damaged'
    )
    OR e.next = 'returned' AND EXISTS (
        SELECT 1 FROM oncebox.deliveries AS d
        WHERE d.receipt = e.receipt AND d.route = e.route AND d.epoch = e.lease
          AND d.state IN ('received', 'retrying', 'held')
          AND NOT EXISTS (
              SELECT 1 FROM oncebox.attempts AS a
              WHERE a.receipt = e.receipt AND a.receipt = ANY ($1)
                AND a.route = e.route AND a.epoch = e.lease
          )
    );
