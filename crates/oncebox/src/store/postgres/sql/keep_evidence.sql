UPDATE oncebox.effects SET evidence_at = statement_timestamp(), evidence = $2 WHERE key = $1;
