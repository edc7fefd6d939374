-- So many at a time. Nobody is so late.
DELETE FROM unanswered
WHERE (key, receipt, route, epoch) IN (
    SELECT key, receipt, route, epoch FROM unanswered WHERE at < ?1 LIMIT ?2
);
