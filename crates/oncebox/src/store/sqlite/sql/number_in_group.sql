-- The next number of a group of messages.
INSERT INTO outbox_groups (route, name, last, touched)
VALUES (?1, ?2, 1, ?3)
ON CONFLICT (route, name) DO UPDATE SET last = last + 1, touched = excluded.touched
RETURNING last;
