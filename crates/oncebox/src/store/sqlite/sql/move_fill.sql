UPDATE routes SET fill_after = ?2 WHERE no = ?1;
