-- Leaves the newest of a source and reason.
DELETE FROM rejected
WHERE head IN (
    SELECT head FROM rejected
    WHERE source = ?1 AND reason = ?2
    ORDER BY head DESC
    LIMIT -1 OFFSET ?3
);
