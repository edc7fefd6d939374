DELETE FROM oncebox.odd_arrivals WHERE id = $1;
