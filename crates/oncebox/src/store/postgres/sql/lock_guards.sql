-- What is counted of content that twins came with, locked in one order until they are recorded.
SELECT source, key, receipt, type, held, types
FROM oncebox.guards
WHERE (source, key) IN (
    SELECT source, key FROM unnest($1::smallint[], $2::uuid[]) AS u (source, key)
)
ORDER BY source, key
FOR UPDATE;
