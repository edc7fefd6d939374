-- What one claim has taken, as long as its leases are good.
SELECT receipt, route, epoch
FROM oncebox.deliveries
WHERE state = 'processing' AND lease_until > statement_timestamp() AND worker = $1;
