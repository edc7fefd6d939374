-- The first id from one on.
SELECT head, tail FROM receipts WHERE head >= ?1 ORDER BY head LIMIT 1;
