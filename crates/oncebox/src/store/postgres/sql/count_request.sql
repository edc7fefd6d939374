-- A request that was there for what was kept aside is there for a receipt from now on.
UPDATE oncebox.requests SET counted = true
WHERE id = $1 AND NOT counted
RETURNING octet_length(body)::bigint;
