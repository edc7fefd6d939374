INSERT INTO oncebox.pairings AS p (source, opened_at, until)
SELECT $1, c.now, c.now + $2::bigint * interval '1 millisecond'
FROM (SELECT clock_timestamp() AS now) AS c
ON CONFLICT (source) DO UPDATE SET
    opened_at = excluded.opened_at,
    until = excluded.until,
    paired = NULL
RETURNING p.opened_at, p.until;
