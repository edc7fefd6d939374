-- The secret in use is the one that verified last; a bare column beside max() is of that row.
SELECT
    s.no, a.accepted_at, a.rejected_at, a.reason, a.hint, coalesce(a.rejected_in_a_row, 0),
    u.fingerprint, u.used_at
FROM sources AS s
LEFT JOIN source_activity AS a ON a.source = s.no
LEFT JOIN (
    SELECT source, fingerprint, max(last_used_at) AS used_at
    FROM secrets
    WHERE last_used_at IS NOT NULL
    GROUP BY source
) AS u ON u.source = s.no
WHERE a.source IS NOT NULL OR u.source IS NOT NULL
ORDER BY s.no;
