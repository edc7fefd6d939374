DELETE FROM guards WHERE source = ?1 AND key = ?2;
