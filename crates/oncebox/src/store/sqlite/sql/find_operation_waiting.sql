-- What waits for an operation and is to be judged again: everything once the one it waited for is
-- over (?4), or dead (?5) on a route that goes on; otherwise what came before that one.
SELECT receipt FROM deliveries
WHERE route = ?1 AND operation = ?2 AND reason = 'same-operation'
  AND (
      ?4
      OR receipt < ?3
      OR (?5 AND (SELECT on_dead FROM routes WHERE no = ?1) = 'continue')
  );
