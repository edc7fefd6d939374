SELECT headers, body, digest FROM receipts WHERE head = ?1 AND tail = ?2;
