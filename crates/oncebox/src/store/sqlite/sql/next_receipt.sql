-- The first id from one on.
SELECT head, tail FROM receipts WHERE head >= ?1
UNION ALL
SELECT head, tail FROM odd_arrivals WHERE head >= ?1
ORDER BY head
LIMIT 1;
