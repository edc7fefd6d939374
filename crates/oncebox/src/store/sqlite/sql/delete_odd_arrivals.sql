DELETE FROM odd_arrivals WHERE receipt = ?1;
