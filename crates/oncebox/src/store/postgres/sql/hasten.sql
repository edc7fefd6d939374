UPDATE oncebox.deliveries
SET due_at = statement_timestamp(), hastened_at = statement_timestamp()
WHERE receipt = $1
  AND route = $2
  AND state = 'retrying'
  AND (
      hastened_at IS NULL
      OR hastened_at <= statement_timestamp() - $3::bigint * interval '1 millisecond'
  );
