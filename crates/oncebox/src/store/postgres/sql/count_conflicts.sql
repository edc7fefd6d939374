-- Before the first its last value is one that nobody has had.
SELECT CASE WHEN c.is_called THEN c.last_value ELSE 0 END FROM oncebox.conflicts_noted AS c;
