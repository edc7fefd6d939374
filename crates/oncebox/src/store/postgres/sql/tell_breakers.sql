-- What a worker tells of its breakers, instead of what it told before. What workers told that are
-- gone is removed with it.
WITH told AS (
    INSERT INTO oncebox.breakers AS b (worker, route, state, reason, next_probe_at, told_at)
    SELECT
        $1, n.route, n.state, n.reason,
        statement_timestamp() + n.probe * interval '1 millisecond', statement_timestamp()
    FROM unnest($2::smallint[], $3::text[], $4::text[], $5::bigint[])
        AS n (route, state, reason, probe)
    ON CONFLICT (worker, route) DO UPDATE SET
        state = excluded.state,
        reason = excluded.reason,
        next_probe_at = excluded.next_probe_at,
        told_at = excluded.told_at
)
DELETE FROM oncebox.breakers AS b
WHERE b.worker = $1 AND b.route <> ALL ($2)
    OR b.told_at < statement_timestamp() - interval '1 day';
