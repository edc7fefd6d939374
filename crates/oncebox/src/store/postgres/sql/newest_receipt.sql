SELECT id FROM oncebox.receipts ORDER BY id DESC LIMIT 1;
