INSERT INTO finished (
    receipt, route, source, created_at, laned, operation, epoch, attempts, failures, crashes,
    snoozes, replays, state, reason, finished_at, first_head, first_tail, status, took_ms, detail,
    summary
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21
);
