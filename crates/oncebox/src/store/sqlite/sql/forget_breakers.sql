-- What a worker told before, and what workers told that are gone.
DELETE FROM breakers WHERE worker = ?1 OR told_at < ?2;
