DELETE FROM repeats WHERE receipt = ?1;
