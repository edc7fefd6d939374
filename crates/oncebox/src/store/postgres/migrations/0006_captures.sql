-- Requests may be kept that nobody verified, marked as such. What is there holds to the old check,
-- so nothing has to be read again.
ALTER TABLE oncebox.receipts DROP CONSTRAINT receipts_trust_check;
ALTER TABLE oncebox.receipts ADD CONSTRAINT receipts_trust_check
CHECK (trust IN ('signed', 'transport', 'digest', 'unverified')) NOT VALID;
