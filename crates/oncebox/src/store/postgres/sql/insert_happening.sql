INSERT INTO oncebox.happenings (at, line)
SELECT at, line FROM unnest($1::timestamptz[], $2::text[]) AS new (at, line);
