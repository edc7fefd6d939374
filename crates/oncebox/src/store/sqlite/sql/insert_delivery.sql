INSERT INTO deliveries (
    receipt, route, source, state, reason, created_at, due_at, lane, place, operation
)
VALUES (?1, ?2, ?3, ?9, ?10, ?4, ?5, ?6, ?7, ?8);
