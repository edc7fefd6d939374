SELECT
    r.id, s.name, r.event_id, r.trust, r.event_type, r.object, r.version, r.received_at,
    octet_length(r.body)::bigint, n.duplicates, n.conflicts, n.twins, n.first_at, n.last_at,
    r.oddity, r.first,
    r.secret, k.fingerprint, r.signed_at, r.headers, r.body, r.digest,
    q.id, r.position, q.events, q.body
FROM oncebox.receipts AS r
JOIN oncebox.sources AS s ON s.no = r.source
LEFT JOIN oncebox.repeats AS n ON n.receipt = r.id
LEFT JOIN oncebox.secrets AS k ON k.source = r.source AND k.no = r.secret
LEFT JOIN oncebox.requests AS q ON q.id = r.request
WHERE r.id = $1;
