-- Lets go what waits for an operation, to be judged again: everything once the one it waited for is
-- over (?5), or dead (?6) on a route that goes on; otherwise what came before that one.
UPDATE deliveries
SET state = 'received', reason = NULL, due_at = ?3
WHERE route = ?1 AND operation = ?2 AND reason = 'same-operation'
  AND (
      ?5
      OR receipt < ?4
      OR (?6 AND (SELECT on_dead FROM routes WHERE no = ?1) = 'continue')
  );
