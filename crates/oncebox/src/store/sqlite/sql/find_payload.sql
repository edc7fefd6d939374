SELECT headers, body, digest, position FROM receipts WHERE head = ?1 AND tail = ?2;
