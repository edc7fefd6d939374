-- The state is told so that only the key fits.
UPDATE oncebox.deliveries
SET due_at = statement_timestamp(), hastened_at = statement_timestamp()
WHERE receipt = $1
  AND route = $2
  AND state NOT IN ('received', 'processing', 'held', 'dead')
  AND (
      hastened_at IS NULL
      OR hastened_at <= statement_timestamp() - $3::bigint * interval '1 millisecond'
  );
