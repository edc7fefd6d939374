-- What to claim for a destination that is only just coming back, or is to be tried: what never
-- failed comes first, oldest first; then, unless only that is wanted (?4), what failed longest ago
-- of those that are due longest.
SELECT receipt, due_at, lost
FROM (
    SELECT * FROM (
        SELECT receipt, due_at, lost, 0 AS turn, receipt AS place
        FROM deliveries
        WHERE route = ?1 AND state = 'received' AND due_at <= ?2
          AND failures = 0 AND crashes = 0 AND replays = 0
        ORDER BY receipt
        LIMIT ?3
    )
    UNION ALL
    SELECT * FROM (
        SELECT receipt, due_at, lost, 1 AS turn, coalesce(failed_at, 0) AS place
        FROM deliveries
        WHERE NOT ?4 AND route = ?1 AND state IN ('received', 'retrying') AND due_at <= ?2
          AND (state = 'retrying' OR failures > 0 OR crashes > 0 OR replays > 0)
        ORDER BY due_at
        LIMIT ?5
    )
)
ORDER BY turn, place, receipt
LIMIT ?3;
