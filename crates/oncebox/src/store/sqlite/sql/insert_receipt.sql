INSERT INTO receipts (
    head, tail, source, received_at, event_id, trust, event_type, object, version,
    secret, signed_at, routes, digest, headers, body, request, position, oddity, first_head,
    first_tail
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20
);
