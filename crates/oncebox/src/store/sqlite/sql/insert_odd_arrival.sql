-- The same odd body is kept once, and only so many for one receipt; all are counted elsewhere.
INSERT INTO odd_arrivals (
    head, tail, receipt, source, oddity, event_id, content, received_at, headers, body
)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10
WHERE (SELECT count(*) FROM odd_arrivals WHERE receipt = ?3) < ?11
ON CONFLICT DO NOTHING;
