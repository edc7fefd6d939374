-- What a delivery found first stays.
INSERT INTO effect_conflicts (key, receipt, tail, route, at, differs)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (key, receipt, route) DO NOTHING;
