DELETE FROM attempts WHERE receipt = ?1;
