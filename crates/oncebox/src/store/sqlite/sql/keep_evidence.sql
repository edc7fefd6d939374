-- A word without a result does not replace one that has it.
UPDATE effects
SET evidence_at = ?2, evidence = ?3
WHERE key = ?1 AND (?3 IS NOT NULL OR evidence IS NULL);
