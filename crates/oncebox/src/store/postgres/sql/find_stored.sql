SELECT id FROM oncebox.receipts WHERE id = ANY ($1);
