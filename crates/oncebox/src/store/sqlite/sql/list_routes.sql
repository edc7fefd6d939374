SELECT
    no, name, born_as, paused_at, base_ms, cap_ms, longest_wait_ms, same_operation_ms,
    max_attempts, max_snoozes, ordered, skip_stale, on_dead, pulled, budget_ms, hold_for_ms,
    fill_after IS NOT NULL
FROM routes
ORDER BY name;
