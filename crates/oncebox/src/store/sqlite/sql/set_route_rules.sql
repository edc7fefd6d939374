UPDATE routes
SET
    base_ms = ?2,
    cap_ms = ?3,
    longest_wait_ms = ?4,
    same_operation_ms = ?5,
    max_attempts = ?6,
    max_snoozes = ?7,
    ordered = ?8,
    skip_stale = ?9,
    on_dead = ?10
WHERE no = ?1;
