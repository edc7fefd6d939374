SELECT no FROM oncebox.secrets WHERE source = $1 AND fingerprint = $2;
