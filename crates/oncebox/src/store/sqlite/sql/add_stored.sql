UPDATE sources SET stored = stored + ?2 WHERE no = ?1;
