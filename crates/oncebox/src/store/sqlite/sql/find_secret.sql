SELECT no FROM secrets WHERE source = ?1 AND fingerprint = ?2;
