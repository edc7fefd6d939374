-- The requests of what was kept aside for a receipt.
SELECT DISTINCT request FROM odd_arrivals WHERE receipt = ?1 AND request IS NOT NULL;
