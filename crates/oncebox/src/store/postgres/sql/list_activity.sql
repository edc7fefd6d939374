-- The secret in use is the one that verified last.
SELECT
    s.no, a.accepted_at, a.rejected_at, a.reason, a.hint, coalesce(a.rejected_in_a_row, 0),
    u.fingerprint, u.last_used_at
FROM oncebox.sources AS s
LEFT JOIN oncebox.source_activity AS a ON a.source = s.no
LEFT JOIN (
    SELECT DISTINCT ON (source) source, fingerprint, last_used_at
    FROM oncebox.secrets
    WHERE last_used_at IS NOT NULL
    ORDER BY source, last_used_at DESC
) AS u ON u.source = s.no
WHERE a.source IS NOT NULL OR u.source IS NOT NULL
ORDER BY s.no;
