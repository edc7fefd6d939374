-- A word without a result does not replace one that has it. Each of those who gave no answer may
-- have done it, also those of whom a person said that they did not.
UPDATE effects
SET
    evidence_at = ?2,
    evidence = ?3,
    unknowns = max(unknowns, (SELECT count(*) FROM unanswered AS u WHERE u.key = effects.key))
WHERE key = ?1 AND (?3 IS NOT NULL OR evidence IS NULL);
