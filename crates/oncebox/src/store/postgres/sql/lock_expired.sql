-- Receipts that go. Nobody opens them again until the transaction ends, nor keeps anything aside
-- for one: whatever refers to it is there by now, and is seen by the statement that removes it.
SELECT id FROM oncebox.receipts WHERE id = ANY ($1) ORDER BY id FOR UPDATE;
