-- It is there already where its events are recorded one by one, or were before the outcome of a
-- commit was lost. Its bytes count from the first receipt on.
INSERT INTO requests (head, tail, source, events, body, counted)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (head) DO UPDATE SET counted = 1 WHERE excluded.counted = 1 AND requests.counted = 0;
