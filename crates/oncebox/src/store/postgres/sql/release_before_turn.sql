-- What was held for an effect, or as damaged, is at its place already: it passes nobody.
UPDATE oncebox.deliveries
SET
    state = 'received',
    reason = NULL,
    effect = NULL,
    due_at = statement_timestamp(),
    ignores_order = ignores_order OR reason NOT IN ('unknown-effect', 'damaged')
WHERE receipt = $1 AND route = $2 AND state = 'held';
