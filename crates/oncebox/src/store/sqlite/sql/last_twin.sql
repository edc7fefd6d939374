SELECT head, tail FROM receipts
WHERE first_head = ?1 AND oddity = 'twin'
ORDER BY head DESC
LIMIT 1;
