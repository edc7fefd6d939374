UPDATE pairings SET paired = ?2, last = ?2
WHERE source = ?1 AND paired IS NULL AND until > ?3;
