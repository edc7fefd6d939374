SELECT head, tail, oddity, event_id, received_at, body
FROM odd_arrivals
WHERE receipt = ?1
ORDER BY head;
