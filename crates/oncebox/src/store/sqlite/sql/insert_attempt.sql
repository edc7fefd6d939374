INSERT INTO attempts (
    receipt, route, epoch, number, replays, ended_at, outcome, took_ms, status, detail
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);
