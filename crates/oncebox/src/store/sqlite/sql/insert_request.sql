-- It is there already where its events are recorded one by one, or were before the outcome of a
-- commit was lost.
INSERT INTO requests (head, tail, source, events, body)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (head) DO NOTHING;
