SELECT headers, body FROM receipts WHERE head = ?1 AND tail = ?2;
