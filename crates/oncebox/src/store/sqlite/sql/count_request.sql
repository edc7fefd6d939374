-- A request that was there for what was kept aside is there for a receipt from now on.
UPDATE requests SET counted = 1 WHERE head = ?1 AND counted = 0 RETURNING length(body);
