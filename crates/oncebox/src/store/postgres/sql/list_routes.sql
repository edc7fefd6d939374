SELECT
    no, name, paused_at, max_attempts, base_ms, cap_ms, longest_wait_ms, max_snoozes, ordered,
    skip_stale, on_dead, same_operation_ms, born_as, pulled, budget_ms, hold_for_ms,
    fill_after IS NOT NULL
FROM oncebox.routes
ORDER BY no;
