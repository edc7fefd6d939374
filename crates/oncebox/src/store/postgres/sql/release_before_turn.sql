-- One that is held for an effect, or as damaged, keeps its place in the lane. A twin or conflict
-- enters the lane now, as its route guards it.
UPDATE oncebox.deliveries AS d
SET
    state = 'received',
    reason = NULL,
    effect = NULL,
    due_at = statement_timestamp(),
    ignores_order = d.ignores_order OR d.reason IN ('order', 'same-operation'),
    lane = CASE
        WHEN d.reason NOT IN ('twin', 'conflict') THEN d.lane
        WHEN t.ordered OR t.skip_stale THEN r.object
    END
FROM oncebox.routes AS t, oncebox.receipts AS r
WHERE d.receipt = $1 AND d.route = $2 AND d.state = 'held' AND t.no = d.route AND r.id = $1;
