-- Checked again where it is decided: a replay may have opened a delivery since it was looked at.
-- Receipts are locked before, in a statement of its own, so that this one sees what the last holder
-- of the lock has opened. Repeats, finished deliveries and attempts go with their receipt; the
-- bytes are given back in the same statement. Says how many went, and how many of which requests.
WITH gone AS (
    DELETE FROM oncebox.receipts AS r
    WHERE r.id = ANY ($1)
      AND NOT EXISTS (SELECT 1 FROM oncebox.deliveries AS d WHERE d.receipt = r.id OFFSET 0)
    RETURNING r.id, r.source, r.request, octet_length(r.headers) + octet_length(r.body) AS bytes
),
finished AS (
    DELETE FROM oncebox.finished
    WHERE receipt = ANY ($1) AND receipt = ANY (ARRAY(SELECT id FROM gone))
),
tried AS (
    DELETE FROM oncebox.attempts
    WHERE receipt = ANY ($1) AND receipt = ANY (ARRAY(SELECT id FROM gone))
),
repeated AS (
    DELETE FROM oncebox.repeats WHERE receipt = ANY (ARRAY(SELECT id FROM gone))
),
freed AS (
    SELECT source, count(*) AS receipts, sum(bytes)::bigint AS bytes FROM gone GROUP BY source
),
given_back AS (
    UPDATE oncebox.sources AS s
    SET stored = greatest(s.stored - f.bytes, 0)
    FROM freed AS f
    WHERE s.no = f.source
),
parts AS (
    SELECT request, count(*)::integer AS receipts
    FROM gone
    WHERE request IS NOT NULL
    GROUP BY request
)
SELECT
    (SELECT coalesce(sum(receipts), 0)::bigint FROM freed),
    ARRAY(SELECT request FROM parts ORDER BY request),
    ARRAY(SELECT receipts FROM parts ORDER BY request);
