-- The attempt that finished a delivery, before it is opened again.
INSERT INTO attempts (
    receipt, route, epoch, number, replays, ended_at, outcome, took_ms, status, detail
)
SELECT
    receipt, route, epoch, attempts, replays, finished_at,
    iif(state = 'processed', 'processed', reason), took_ms, status, detail
FROM finished
WHERE receipt = ?1 AND route = ?2 AND took_ms IS NOT NULL;
