-- A stretch of the table, as of effects. Nobody is so late.
DELETE FROM oncebox.unanswered
WHERE ctid >= $1::text::tid AND ctid < $2::text::tid AND at < $3;
