SELECT state, reason, attempts FROM oncebox.deliveries WHERE receipt = $1 AND route = $2
UNION ALL
SELECT state, reason, attempts FROM oncebox.finished WHERE receipt = $1 AND route = $2;
