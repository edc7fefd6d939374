SELECT receipt, route, source, lane, place, operation, created_at, epoch
FROM oncebox.deliveries
WHERE state = 'processing'
  AND lease_until >= statement_timestamp() - $2::bigint * interval '1 millisecond'
  AND lease_until <= statement_timestamp()
ORDER BY lease_until
LIMIT $1;
