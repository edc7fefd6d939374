-- Whether a lease is one that the effect was begun under, and that gave no answer.
SELECT 1
FROM oncebox.unanswered AS u
WHERE u.key = $1 AND u.receipt = $2 AND u.route = $3 AND u.epoch = $4;
