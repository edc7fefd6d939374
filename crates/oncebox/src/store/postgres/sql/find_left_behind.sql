-- Routes whose claims have gone past something due, with where it is.
SELECT f.route, d.due_at
FROM unnest($1::smallint[], $2::timestamptz[]) AS f (route, floor)
CROSS JOIN LATERAL (
    SELECT d.due_at
    FROM oncebox.deliveries AS d
    WHERE d.route = f.route AND d.state IN ('received', 'retrying') AND d.due_at < f.floor
    ORDER BY d.due_at
    LIMIT 1
) AS d;
