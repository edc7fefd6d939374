UPDATE effects SET evidence_at = ?2, evidence = ?3 WHERE key = ?1;
