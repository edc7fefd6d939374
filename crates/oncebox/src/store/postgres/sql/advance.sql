-- No row if the lease is not good any more.
SELECT oncebox.move_watermark($1, $2, w.source, $4, $5)
FROM oncebox.find_work($1, $2, $3) AS w
WHERE w.attempt IS NOT NULL;
