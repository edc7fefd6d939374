SELECT id, headers, body, digest FROM oncebox.receipts WHERE id = ANY ($1);
