SELECT
    r.head, r.tail, s.name, r.event_id, r.trust, r.event_type, r.object, r.version, r.received_at,
    length(r.body), n.duplicates, n.conflicts, n.twins, n.first_at, n.last_at,
    r.oddity, r.first_head, r.first_tail,
    r.secret, k.fingerprint, r.signed_at, r.headers, r.body, r.digest,
    q.head, q.tail, r.position, q.events, q.body
FROM receipts AS r
JOIN sources AS s ON s.no = r.source
LEFT JOIN repeats AS n ON n.receipt = r.head
LEFT JOIN secrets AS k ON k.source = r.source AND k.no = r.secret
LEFT JOIN requests AS q ON q.head = r.request
WHERE r.head = ?1 AND r.tail = ?2;
