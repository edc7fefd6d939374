-- A lease of a worker elsewhere (?3) that was good at the stop (?1) lasts from now (?2) on for as
-- long as remained of it. Every other lease is over.
UPDATE deliveries
SET lease_until = iif(worker GLOB ?3 AND lease_until > ?1, lease_until - ?1 + ?2, ?2)
WHERE state = 'processing' AND lease_until IS NOT NULL;
