-- Held deliveries after a place, to see whether anything is still in their way.
SELECT
    receipt, route, source, lane, place, operation, created_at, ignores_stale, ignores_order, epoch
FROM oncebox.deliveries
WHERE state = 'held'
  AND reason IN ('order', 'same-operation')
  AND (route, receipt) > ($1, $2)
ORDER BY route, receipt
LIMIT $3;
