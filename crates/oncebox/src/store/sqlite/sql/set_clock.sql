-- How far the serving process's clock is ahead of the wall, for those that open the file beside it.
INSERT INTO marks (name, value) VALUES ('clock', ?1)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;
