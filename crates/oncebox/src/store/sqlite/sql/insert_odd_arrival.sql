-- The same odd body is kept once, only so many for one receipt, and none for a receipt that has
-- expired; all are counted elsewhere.
INSERT INTO odd_arrivals (
    head, tail, receipt, source, oddity, event_id, content, received_at, headers, body, request,
    position
)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12
WHERE EXISTS (SELECT 1 FROM receipts WHERE head = ?3)
  AND (SELECT count(*) FROM odd_arrivals WHERE receipt = ?3) < ?13
ON CONFLICT DO NOTHING;
