-- Adds what a source was sent. Notes of several processes may come in any order: later times win.
INSERT INTO source_activity (source, accepted_at, rejected_at, reason, hint, rejected_in_a_row)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (source) DO UPDATE SET
    accepted_at = max(
        coalesce(accepted_at, excluded.accepted_at),
        coalesce(excluded.accepted_at, accepted_at)
    ),
    reason = iif(
        excluded.rejected_at >= coalesce(rejected_at, excluded.rejected_at),
        excluded.reason,
        reason
    ),
    hint = iif(
        excluded.rejected_at >= coalesce(rejected_at, excluded.rejected_at),
        excluded.hint,
        hint
    ),
    rejected_at = max(
        coalesce(rejected_at, excluded.rejected_at),
        coalesce(excluded.rejected_at, rejected_at)
    ),
    rejected_in_a_row =
        iif(excluded.accepted_at IS NULL, rejected_in_a_row, 0) + excluded.rejected_in_a_row;
