-- For what was kept aside: record_parts.sql has its own way. Should the request have come meanwhile
-- it has one more that names it.
INSERT INTO oncebox.requests AS q (id, source, events, body, receipts, counted)
VALUES ($1, $2, $3, $4, 1, false)
ON CONFLICT (id) DO UPDATE SET receipts = q.receipts + 1;
