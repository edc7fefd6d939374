-- The unique key decides who was first.
INSERT INTO effects (
    key, kind, state, receipt, tail, route, epoch, attempt, at, digest, result
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT (key) DO NOTHING;
