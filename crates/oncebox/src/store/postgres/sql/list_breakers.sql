SELECT route, worker, state, reason, next_probe_at, told_at
FROM oncebox.breakers
WHERE told_at >= statement_timestamp() - $1::bigint * interval '1 millisecond'
ORDER BY route, worker;
