-- Requests may be kept that nobody verified, marked as such. SQLite cannot change a check, and a
-- new table would mean to copy every receipt. The check allows more than before and is not part of
-- how rows are laid out, so the words of the schema are changed in place, as its manual describes:
-- https://www.sqlite.org/lang_altertable.html#otheralter
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(
    sql,
    '(trust IN (''signed'', ''transport'', ''digest''))',
    '(trust IN (''signed'', ''transport'', ''digest'', ''unverified''))'
)
WHERE type = 'table' AND name = 'receipts';
PRAGMA writable_schema = RESET;

-- Any other change of the schema tells every connection to read it again.
CREATE TABLE schema_changed (id INTEGER) STRICT;
DROP TABLE schema_changed;
