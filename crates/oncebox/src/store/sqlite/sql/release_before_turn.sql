-- One that is held for an effect, or as damaged, is at its place already, and passes nobody.
UPDATE deliveries
SET
    state = 'received',
    reason = NULL,
    effect = NULL,
    due_at = ?3,
    ignores_order = ignores_order OR reason NOT IN ('unknown-effect', 'damaged')
WHERE receipt = ?1 AND route = ?2 AND state = 'held';
