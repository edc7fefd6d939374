SELECT head, tail, content FROM identities WHERE source = ?1 AND key = ?2;
