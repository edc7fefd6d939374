SELECT result FROM effects WHERE key = ?1 AND state = 'done';
