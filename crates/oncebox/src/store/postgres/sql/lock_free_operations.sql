-- As lock_free_lanes.sql, for operations.
SELECT o.route, o.key
FROM unnest($1::smallint[], $2::uuid[]) AS n (route, key)
CROSS JOIN LATERAL (
    SELECT o.route, o.key
    FROM oncebox.operations AS o
    WHERE o.route = n.route AND o.key = n.key
    FOR UPDATE SKIP LOCKED
) AS o;
