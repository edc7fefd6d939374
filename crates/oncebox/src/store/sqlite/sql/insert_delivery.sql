-- The stored rules decide about the lane: a process that has not reloaded yet goes by older ones.
INSERT INTO deliveries (
    receipt, route, source, state, reason, created_at, due_at, lane, place, operation
)
VALUES (
    ?1, ?2, ?3, ?9, ?10, ?4, ?5,
    iif((SELECT t.ordered OR t.skip_stale FROM routes AS t WHERE t.no = ?2), ?6, NULL), ?7, ?8
);
