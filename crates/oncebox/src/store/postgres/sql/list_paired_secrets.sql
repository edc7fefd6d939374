SELECT no, fingerprint, sealed, paired_at
FROM oncebox.paired_secrets
WHERE source = $1
ORDER BY no;
