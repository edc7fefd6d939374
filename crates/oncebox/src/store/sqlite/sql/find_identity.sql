SELECT head, tail, content, last_seen FROM identities WHERE source = ?1 AND key = ?2;
