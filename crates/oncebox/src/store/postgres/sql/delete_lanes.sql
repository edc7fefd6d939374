-- What nobody has looked at for long, unless a delivery is open. A lane that is locked is in use.
WITH old AS MATERIALIZED (
    SELECT l.route, l.source, l.object
    FROM oncebox.lanes AS l
    WHERE l.ctid >= $1::text::tid
      AND l.ctid < $2::text::tid
      AND l.touched < floor(extract(epoch FROM statement_timestamp()) / 86400)::integer - $3
      AND NOT EXISTS (
          SELECT 1 FROM oncebox.deliveries AS d
          WHERE d.route = l.route AND d.source = l.source AND d.lane = l.object
      )
    FOR UPDATE OF l SKIP LOCKED
)
DELETE FROM oncebox.lanes AS l
USING old AS o
WHERE l.route = o.route AND l.source = o.source AND l.object = o.object;
