SELECT
    o.id, o.oddity, o.event_id, o.received_at, o.body, o.receipt, s.name, o.headers,
    q.id, o.position, q.events, q.body
FROM oncebox.odd_arrivals AS o
JOIN oncebox.sources AS s ON s.no = o.source
LEFT JOIN oncebox.requests AS q ON q.id = o.request
WHERE o.id = $1;
