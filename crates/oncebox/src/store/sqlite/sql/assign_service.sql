-- Effects of a route that has done some without a service are in the ledger under bare keys: under
-- a service they would happen again.
UPDATE routes SET service = ?2
WHERE no = ?1 AND service IS NULL
  AND (?2 = '' OR NOT EXISTS (SELECT 1 FROM effects AS e WHERE e.route = ?1 AND e.kind <> 'step'));
