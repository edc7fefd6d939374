-- Whether a lease is one that the effect was begun under, and that gave no answer.
SELECT EXISTS (
    SELECT 1 FROM unanswered
    WHERE key = ?1 AND receipt = ?2 AND tail = ?3 AND route = ?4 AND epoch = ?5
);
