INSERT INTO oncebox.deliveries (receipt, route, source, state, created_at, lane, place, operation)
VALUES ($1, $2, $3, 'received', $4, $5, $6, $7);
