-- Locks the lanes that are not locked, and returns them. It waits for no lock, so the
-- order does not matter. A claim has made the lane of whatever is under a lease.
SELECT l.route, l.source, l.object
FROM unnest($1::smallint[], $2::smallint[], $3::text[]) AS n (route, source, object)
CROSS JOIN LATERAL (
    SELECT l.route, l.source, l.object
    FROM oncebox.lanes AS l
    WHERE l.route = n.route AND l.source = n.source AND l.object = n.object
    FOR UPDATE SKIP LOCKED
) AS l;
