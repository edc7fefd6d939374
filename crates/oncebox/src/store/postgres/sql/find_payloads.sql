SELECT id, headers, body, digest, position FROM oncebox.receipts WHERE id = ANY ($1);
