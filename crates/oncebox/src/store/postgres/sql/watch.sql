INSERT INTO oncebox.watches AS w (name, until)
VALUES ('tail', statement_timestamp() + $1 * interval '1 millisecond')
ON CONFLICT (name) DO UPDATE SET until = greatest(w.until, excluded.until);
