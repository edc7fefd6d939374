-- A twin's id leads to the receipt that has its body.
UPDATE identities SET head = ?3, tail = ?4 WHERE source = ?1 AND key = ?2;
