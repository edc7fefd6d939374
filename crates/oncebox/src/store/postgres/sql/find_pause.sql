-- How long until a delivery is due, in milliseconds.
SELECT greatest(ceil(extract(epoch FROM due_at - clock_timestamp()) * 1000), 0)::bigint
FROM oncebox.deliveries
WHERE receipt = $1 AND route = $2;
