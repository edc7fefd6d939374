INSERT INTO oncebox.receipts (
    id, received_at, signed_at, version, source, secret, routes, trust, event_id, event_type,
    object, digest, headers, body, request, position
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16);
