INSERT INTO deliveries (receipt, route, state, created_at) VALUES (?1, ?2, 'received', ?3);
