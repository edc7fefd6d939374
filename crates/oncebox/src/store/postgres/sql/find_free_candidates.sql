-- As find_candidates.sql, for candidates of which nobody holds what they share with others. That is
-- locked.
SELECT
    d.receipt, d.route, d.source, d.lane, d.place, d.operation, d.created_at, d.ignores_stale,
    d.ignores_order, d.epoch, d.due_at, d.lost > 0, statement_timestamp(), NULL::smallint[]
FROM unnest($1::smallint[], $2::bigint[]) AS w (route, most)
CROSS JOIN LATERAL (
    SELECT oncebox.lock_free_candidates(r, least(w.most, 256)::integer) AS free
    FROM oncebox.routes AS r
    WHERE r.no = w.route AND r.paused_at IS NULL AND r.fill_after IS NULL
    OFFSET 0
) AS c
CROSS JOIN LATERAL unnest(c.free) AS d;
