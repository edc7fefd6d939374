-- What a delivery found first stays. The effect is locked by this transaction.
INSERT INTO oncebox.effect_conflicts (key, receipt, route, at, differs)
VALUES ($1, $2, $3, statement_timestamp(), $4)
ON CONFLICT (key, receipt, route) DO NOTHING;
