DELETE FROM finished WHERE receipt = ?1 AND route = ?2;
