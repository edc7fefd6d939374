-- A word without a result does not replace one that has it. The effect is locked by this
-- transaction.
UPDATE oncebox.effects AS e
SET evidence_at = statement_timestamp(), evidence = $2
WHERE e.key = $1 AND ($2::text IS NOT NULL OR e.evidence IS NULL);
