-- No row if the lease is not good any more.
SELECT m.outcome, m.message
FROM oncebox.find_work($1, $2, $3) AS w
CROSS JOIN LATERAL oncebox.put_message($1, $2, $3, w.attempt, $4, $5, $6, $7, $8) AS m
WHERE w.attempt IS NOT NULL;
