INSERT INTO oncebox.source_windows (source, node, payloads_s, identities_s, told_at)
SELECT s.no, $1, a.payloads, a.identities, clock_timestamp()
FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS a (name, payloads, identities)
JOIN oncebox.sources AS s ON s.name = a.name
ORDER BY s.no
ON CONFLICT (source, node) DO UPDATE SET
    payloads_s = excluded.payloads_s,
    identities_s = excluded.identities_s,
    told_at = excluded.told_at;
