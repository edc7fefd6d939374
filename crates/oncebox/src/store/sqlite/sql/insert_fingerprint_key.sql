INSERT INTO fingerprint_key (one, key) VALUES (1, ?1)
ON CONFLICT (one) DO NOTHING;
