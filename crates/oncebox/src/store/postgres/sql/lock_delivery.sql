SELECT state FROM oncebox.deliveries WHERE receipt = $1 AND route = $2 FOR UPDATE;
