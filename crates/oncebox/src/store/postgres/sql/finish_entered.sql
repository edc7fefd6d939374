-- Ends the attempt that this transaction has entered. No row if it is another transaction by now.
SELECT oncebox.finish($1, $2, $3, $4, $5::bigint * interval '1 millisecond')
WHERE current_setting('oncebox.delivery', true) = $1
  AND current_setting('oncebox.lease', true) = $2::text;
