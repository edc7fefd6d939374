SELECT
    o.head, o.tail, o.oddity, o.event_id, o.received_at, o.body, r.head, r.tail, s.name, o.headers,
    q.head, q.tail, o.position, q.events, q.body
FROM odd_arrivals AS o
JOIN receipts AS r ON r.head = o.receipt
JOIN sources AS s ON s.no = o.source
LEFT JOIN requests AS q ON q.head = o.request
WHERE o.head = ?1 AND o.tail = ?2;
