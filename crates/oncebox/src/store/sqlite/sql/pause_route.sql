-- A route that is paused again keeps the time it was paused first.
UPDATE routes SET paused_at = iif(?2, coalesce(paused_at, ?3), NULL) WHERE name = ?1;
