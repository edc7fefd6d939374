SELECT head, tail FROM receipts ORDER BY head DESC LIMIT 1;
