UPDATE routes SET service = ?2 WHERE no = ?1 AND service IS NULL;
