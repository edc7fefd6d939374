SELECT id
FROM oncebox.receipts
WHERE first = $1 AND oddity = 'twin'
ORDER BY id DESC
LIMIT 1;
