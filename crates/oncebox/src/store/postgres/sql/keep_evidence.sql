-- A word without a result does not replace one that has it. Each of those who gave no answer may
-- have done it, also those of whom a person said that they did not. The effect is locked by this
-- transaction.
UPDATE oncebox.effects AS e
SET
    evidence_at = statement_timestamp(),
    evidence = $2,
    unknowns = greatest(
        e.unknowns, (SELECT count(*) FROM oncebox.unanswered AS u WHERE u.key = e.key)
    )
WHERE e.key = $1 AND ($2::text IS NOT NULL OR e.evidence IS NULL);
