-- Nothing once the job was cancelled or somebody else has it.
SELECT 1
FROM oncebox.replays
WHERE id = $1
  AND epoch = $2
  AND phase = 'running'
  AND lease_until > statement_timestamp()
FOR UPDATE;
