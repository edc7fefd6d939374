-- One that is held for an effect, or as damaged, keeps its place in the lane. A twin or conflict
-- enters the lane now, as its route guards it.
UPDATE deliveries AS d
SET
    state = 'received',
    reason = NULL,
    effect = NULL,
    due_at = ?3,
    ignores_order = d.ignores_order OR d.reason IN ('order', 'same-operation'),
    lane = iif(
        d.reason IN ('twin', 'conflict'), iif(t.ordered OR t.skip_stale, r.object, NULL), d.lane
    )
FROM routes AS t, receipts AS r
WHERE d.receipt = ?1 AND d.route = ?2 AND d.state = 'held'
  AND t.no = d.route AND r.head = d.receipt;
