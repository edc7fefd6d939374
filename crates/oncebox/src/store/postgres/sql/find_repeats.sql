-- What is known of arrivals that were not new: the owner of their id, the first with their content,
-- and the odd receipt with both. The message makes this transaction write: its commit is synced,
-- and replicated, after the rows were seen. Plain reads would promise nothing.
WITH synced AS MATERIALIZED (
    SELECT pg_logical_emit_message(true, 'oncebox', '') AS position
)
SELECT
    k.n, i.receipt, i.content, i.last_seen, g.receipt, g.last_seen, g.identity, o.receipt,
    o.last_seen
FROM synced
CROSS JOIN unnest($1::smallint[], $2::uuid[], $3::uuid[], $4::uuid[])
    WITH ORDINALITY AS k (source, key, guard_key, odd_key, n)
LEFT JOIN LATERAL (
    SELECT i.receipt, i.content, i.last_seen
    FROM oncebox.identities AS i
    WHERE i.source = k.source AND i.key = k.key
    OFFSET 0
) AS i ON true
LEFT JOIN LATERAL (
    SELECT g.receipt, g.last_seen, g.identity
    FROM oncebox.guards AS g
    WHERE g.source = k.source AND g.key = k.guard_key
    OFFSET 0
) AS g ON true
LEFT JOIN LATERAL (
    SELECT o.receipt, o.last_seen
    FROM oncebox.identities AS o
    WHERE o.source = k.source AND o.key = k.odd_key
    OFFSET 0
) AS o ON true
WHERE synced.position IS NOT NULL;
