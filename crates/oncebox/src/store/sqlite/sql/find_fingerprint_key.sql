SELECT key FROM fingerprint_key;
