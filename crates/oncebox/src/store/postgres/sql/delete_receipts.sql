-- Checked again where it is decided: a replay may have opened a delivery since it was looked at.
WITH gone AS (
    DELETE FROM oncebox.receipts AS r
    WHERE r.id = ANY ($1)
      AND NOT EXISTS (SELECT 1 FROM oncebox.deliveries AS d WHERE d.receipt = r.id)
    RETURNING r.id, r.source, octet_length(r.headers) + octet_length(r.body) AS bytes
),
uncounted AS (
    DELETE FROM oncebox.repeats WHERE receipt IN (SELECT id FROM gone)
),
unkept AS (
    DELETE FROM oncebox.odd_arrivals WHERE receipt IN (SELECT id FROM gone)
)
SELECT source, count(*), sum(bytes)::bigint FROM gone GROUP BY source ORDER BY source;
