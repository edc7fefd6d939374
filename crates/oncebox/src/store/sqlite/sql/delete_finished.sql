DELETE FROM finished WHERE receipt = ?1;
