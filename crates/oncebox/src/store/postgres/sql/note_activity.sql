-- Adds what a source was sent. Notes of several nodes may come in any order: later times win.
INSERT INTO oncebox.source_activity AS a
    (source, accepted_at, rejected_at, reason, hint, rejected_in_a_row)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (source) DO UPDATE SET
    accepted_at = greatest(a.accepted_at, excluded.accepted_at),
    reason = CASE
        WHEN excluded.rejected_at >= coalesce(a.rejected_at, excluded.rejected_at)
            THEN excluded.reason
        ELSE a.reason
    END,
    hint = CASE
        WHEN excluded.rejected_at >= coalesce(a.rejected_at, excluded.rejected_at)
            THEN excluded.hint
        ELSE a.hint
    END,
    rejected_at = greatest(a.rejected_at, excluded.rejected_at),
    rejected_in_a_row =
        CASE WHEN excluded.accepted_at IS NULL THEN a.rejected_in_a_row ELSE 0 END
        + excluded.rejected_in_a_row;
