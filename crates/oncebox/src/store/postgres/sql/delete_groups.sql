-- Groups that nobody has written to for long, unless a message of theirs is open: numbers must not
-- begin again behind it. One that is locked is in use.
WITH old AS MATERIALIZED (
    SELECT g.ctid AS tid
    FROM oncebox.outbox_groups AS g
    JOIN oncebox.routes AS t ON t.no = g.route
    JOIN oncebox.sources AS s ON s.name = t.name
    WHERE g.ctid >= $1::text::tid
      AND g.ctid < $2::text::tid
      AND g.touched < $3
      AND NOT EXISTS (
          SELECT 1 FROM oncebox.deliveries AS d
          WHERE d.route = g.route AND d.source = s.no AND d.lane = g.name
      )
    FOR UPDATE OF g SKIP LOCKED
)
DELETE FROM oncebox.outbox_groups WHERE ctid = ANY (ARRAY(SELECT tid FROM old));
