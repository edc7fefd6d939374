DELETE FROM odd_arrivals WHERE head = ?1 AND tail = ?2;
