SELECT id, oddity, event_id, event_type, received_at
FROM oncebox.receipts
WHERE first = $1
ORDER BY id
LIMIT $2;
