INSERT INTO delivery_counts (route, state, reason, count, came)
VALUES (?1, ?2, ?3, ?4, ?4)
ON CONFLICT (route, state, reason) DO UPDATE SET count = count + ?4, came = came + ?4;
