-- The number of the same secret, if it is there, and how many there are.
SELECT max(no) FILTER (WHERE mark = $2), count(*) FROM oncebox.paired_secrets WHERE source = $1;
