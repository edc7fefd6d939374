-- One that is held for an effect is at its place already, and passes nobody.
UPDATE deliveries
SET
    state = 'received',
    reason = NULL,
    effect = NULL,
    due_at = ?3,
    ignores_order = ignores_order OR reason <> 'unknown-effect'
WHERE receipt = ?1 AND route = ?2 AND state = 'held';
