-- The newest of an operation that was processed, whichever was last.
INSERT INTO operations (route, key, head, tail, received_at, touched)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (route, key) DO UPDATE SET
    head = excluded.head,
    tail = excluded.tail,
    received_at = excluded.received_at,
    touched = excluded.touched
WHERE received_at IS NULL OR received_at <= excluded.received_at;
