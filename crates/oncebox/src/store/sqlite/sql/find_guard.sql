SELECT head, tail, held, types, type FROM guards WHERE source = ?1 AND key = ?2;
