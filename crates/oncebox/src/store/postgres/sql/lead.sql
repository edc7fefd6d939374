-- By the database's clock. A leader that is frozen loses it by being silent.
INSERT INTO oncebox.leaders AS l (duty, holder, until)
VALUES ('maintenance', $1, clock_timestamp() + $2 * interval '1 second')
ON CONFLICT (duty) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE l.holder = excluded.holder OR l.until < clock_timestamp();
