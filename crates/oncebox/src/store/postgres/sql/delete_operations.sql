-- As delete_lanes.sql.
WITH old AS MATERIALIZED (
    SELECT o.route, o.key
    FROM oncebox.operations AS o
    WHERE o.ctid >= $1::text::tid
      AND o.ctid < $2::text::tid
      AND o.touched < floor(extract(epoch FROM statement_timestamp()) / 86400)::integer - $3
      AND NOT EXISTS (
          SELECT 1 FROM oncebox.deliveries AS d WHERE d.route = o.route AND d.operation = o.key
      )
    FOR UPDATE OF o SKIP LOCKED
)
DELETE FROM oncebox.operations AS o
USING old AS a
WHERE o.route = a.route AND o.key = a.key;
