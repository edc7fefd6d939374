SELECT id, oddity, event_id, received_at, body
FROM oncebox.odd_arrivals
WHERE receipt = $1
ORDER BY id;
