-- The job is locked before.
UPDATE oncebox.replays
SET
    opened = opened + $2,
    passed = passed + $3,
    cursor_receipt = $4,
    cursor_route = $5,
    phase = CASE WHEN $6 THEN 'done' ELSE phase END,
    lease_until = statement_timestamp() + $7::bigint * interval '1 millisecond'
WHERE id = $1;
