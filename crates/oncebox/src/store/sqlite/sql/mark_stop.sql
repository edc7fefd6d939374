-- When the serving process stopped in order, by its own clock.
INSERT INTO marks (name, value) VALUES ('stopped', ?1)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;
