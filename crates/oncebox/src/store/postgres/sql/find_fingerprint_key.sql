SELECT key FROM oncebox.fingerprint_key;
