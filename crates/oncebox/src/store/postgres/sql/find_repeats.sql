-- What the identities of repeats lead to. The message makes this transaction write: its commit
-- is synced, and replicated, after the rows were seen. Plain reads would promise nothing.
WITH synced AS MATERIALIZED (
    SELECT pg_logical_emit_message(true, 'oncebox', '') AS position
)
SELECT
    k.n, i.receipt, i.content, i.last_seen, b.receipt, b.last_seen,
    EXISTS (SELECT 1 FROM oncebox.receipts AS r WHERE r.id = i.receipt)
FROM synced
CROSS JOIN unnest($1::smallint[], $2::uuid[], $3::uuid[])
    WITH ORDINALITY AS k (source, key, body_key, n)
JOIN oncebox.identities AS i ON i.source = k.source AND i.key = k.key
LEFT JOIN oncebox.identities AS b ON b.source = k.source AND b.key = k.body_key
WHERE synced.position IS NOT NULL;
