INSERT INTO oncebox.paired_secrets (source, no, mark, fingerprint, paired_at, sealed)
VALUES ($1, $2, $3, $4, $5, $6);
