UPDATE sources SET stored = max(stored + ?2, 0) WHERE no = ?1;
