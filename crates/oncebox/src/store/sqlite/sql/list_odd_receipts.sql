SELECT head, tail, oddity, event_id, event_type, received_at
FROM receipts
WHERE first_head = ?1 AND first_tail = ?2
ORDER BY head
LIMIT ?3;
