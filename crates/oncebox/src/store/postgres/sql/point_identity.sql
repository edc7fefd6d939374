-- A twin's id leads to the receipt that has its body.
UPDATE oncebox.identities SET receipt = $3 WHERE source = $1 AND key = $2 AND receipt = $4;
