-- Receipts that go. No replay opens them again until the transaction ends: a delivery that one has
-- opened is there by now, and is seen by the statement that removes receipts.
SELECT id FROM oncebox.receipts WHERE id = ANY ($1) ORDER BY id FOR UPDATE;
