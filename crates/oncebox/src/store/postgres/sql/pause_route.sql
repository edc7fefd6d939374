-- A route that is paused again keeps the time it was paused first.
UPDATE oncebox.routes
SET paused_at = CASE WHEN $2 THEN coalesce(paused_at, now()) END
WHERE name = $1;
