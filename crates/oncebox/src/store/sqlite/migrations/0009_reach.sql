-- How many conflicts were ever noted: a number that is read at once, however many there are, and
-- that does not fall when some of them expire.
INSERT INTO marks (name, value) VALUES ('conflicts', 0);

CREATE TRIGGER conflicts_counted AFTER INSERT ON effect_conflicts
BEGIN
    UPDATE marks SET value = value + 1 WHERE name = 'conflicts';
END;
