DELETE FROM deliveries WHERE receipt = ?1 AND route = ?2;
