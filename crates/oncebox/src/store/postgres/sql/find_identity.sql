SELECT receipt FROM oncebox.identities WHERE source = $1 AND key = $2;
