-- Receipts that are neither expired nor opened again by somebody else until the transaction ends.
SELECT id FROM oncebox.receipts WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE;
