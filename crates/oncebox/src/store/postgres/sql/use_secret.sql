UPDATE oncebox.secrets
SET last_used_at = greatest(last_used_at, $3)
WHERE source = $1 AND no = $2;
