-- Only where it changes something: the whole row is written, its body included.
UPDATE receipts SET routes = 1 WHERE head = ?1 AND routes = 0;
