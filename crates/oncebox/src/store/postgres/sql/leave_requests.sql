-- Receipts of these requests have gone, that many of each. A request goes with the last of them,
-- and its bytes are given back. Locked in one order, so that two nodes cannot deadlock; the one
-- that waited sees what the other has left.
WITH locked AS MATERIALIZED (
    SELECT q.id, q.receipts - p.receipts AS receipts
    FROM oncebox.requests AS q
    JOIN unnest($1::uuid[], $2::integer[]) AS p (id, receipts) ON p.id = q.id
    WHERE q.id = ANY ($1)
    ORDER BY q.id
    FOR UPDATE OF q
),
left_over AS (
    UPDATE oncebox.requests AS q SET receipts = l.receipts
    FROM locked AS l
    WHERE q.id = l.id AND q.id = ANY ($1) AND l.receipts > 0
),
gone AS (
    DELETE FROM oncebox.requests AS q
    USING locked AS l
    WHERE q.id = l.id AND q.id = ANY ($1) AND l.receipts <= 0
    RETURNING q.source, octet_length(q.body) AS bytes
),
freed AS (
    SELECT source, sum(bytes)::bigint AS bytes FROM gone GROUP BY source
)
UPDATE oncebox.sources AS s
SET stored = greatest(s.stored - f.bytes, 0)
FROM freed AS f
WHERE s.no = f.source;
