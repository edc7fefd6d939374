SELECT route, worker, state, reason, next_probe_at, told_at
FROM breakers
WHERE told_at >= ?1
ORDER BY route, worker;
