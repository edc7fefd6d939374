SELECT o.id, o.oddity, o.event_id, o.received_at, o.body, o.receipt, s.name, o.headers
FROM oncebox.odd_arrivals AS o
JOIN oncebox.sources AS s ON s.no = o.source
WHERE o.id = $1;
