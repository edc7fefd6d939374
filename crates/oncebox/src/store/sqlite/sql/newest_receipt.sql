SELECT head, tail FROM receipts
UNION ALL
SELECT head, tail FROM odd_arrivals
ORDER BY head DESC
LIMIT 1;
