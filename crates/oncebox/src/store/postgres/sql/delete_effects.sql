-- A stretch of the table, read in the order it lies on disk. What an open delivery did stays, and
-- so does a message that is still on its way. One that is locked is in use.
WITH old AS MATERIALIZED (
    SELECT e.ctid AS tid
    FROM oncebox.effects AS e
    WHERE e.ctid >= $1::text::tid
      AND e.ctid < $2::text::tid
      AND e.state = 'done'
      AND e.at < $3
      AND NOT EXISTS (
          SELECT 1 FROM oncebox.deliveries AS d
          WHERE d.receipt = e.receipt AND d.route = e.route
      )
      AND NOT EXISTS (
          SELECT 1 FROM oncebox.deliveries AS d
          WHERE d.receipt = CASE e.kind WHEN 'message' THEN btrim(e.result, '"')::uuid END
      )
    FOR UPDATE OF e SKIP LOCKED
)
DELETE FROM oncebox.effects WHERE ctid = ANY (ARRAY(SELECT tid FROM old));
