-- One breaker of a worker that is not closed. What it told before is removed first.
INSERT INTO breakers (worker, route, state, reason, next_probe_at, told_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6);
