INSERT INTO watches (name, until) VALUES ('tail', ?1)
ON CONFLICT (name) DO UPDATE SET until = max(until, excluded.until);
