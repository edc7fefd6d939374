-- The attempt that finished a delivery is told where the delivery is finished. What was skipped
-- without one took no time.
SELECT t.name, a.number, a.replays, a.ended_at, a.took_ms, a.outcome, a.status, a.detail
FROM (
    SELECT route, epoch, number, replays, ended_at, took_ms, outcome, status, detail
    FROM oncebox.attempts
    WHERE receipt = $1
    UNION ALL
    SELECT
        route, epoch, attempts, replays, finished_at, took_ms, coalesce(reason, state), status,
        detail
    FROM oncebox.finished
    WHERE receipt = $1 AND took_ms IS NOT NULL
) AS a
JOIN oncebox.routes AS t ON t.no = a.route
ORDER BY a.ended_at, a.epoch;
