UPDATE deliveries
SET lease_until = ?5
WHERE receipt = ?1 AND route = ?2 AND state = 'processing' AND epoch = ?3 AND lease_until > ?4;
