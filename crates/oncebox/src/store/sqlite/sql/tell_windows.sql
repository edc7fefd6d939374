INSERT INTO source_windows (source, payloads_s, identities_s)
SELECT no, ?2, ?3
FROM sources
WHERE name = ?1
ON CONFLICT (source) DO UPDATE SET
    payloads_s = excluded.payloads_s,
    identities_s = excluded.identities_s;
