-- Only if they differ. A route that comes to guard objects has to be filled with them.
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
    on_dead = ?10,
    pulled = ?11,
    budget_ms = ?12,
    hold_for_ms = ?13,
    fill_after = CASE
        WHEN NOT (?8 OR ?9) THEN NULL
        WHEN ordered = ?8 AND skip_stale = ?9 THEN fill_after
        ELSE 0
    END
WHERE no = ?1
  AND (
    base_ms, cap_ms, longest_wait_ms, same_operation_ms, max_attempts, max_snoozes, ordered,
    skip_stale, on_dead, pulled, budget_ms, hold_for_ms
  ) IS NOT (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13);
