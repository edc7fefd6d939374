SELECT no, fingerprint, sealed, paired_at
FROM paired_secrets
WHERE source = ?1
ORDER BY no;
