-- The mark of an orderly stop is good for one start.
DELETE FROM marks WHERE name = 'stopped' RETURNING value;
