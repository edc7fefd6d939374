SELECT id, headers, body FROM oncebox.receipts WHERE id = ANY ($1);
