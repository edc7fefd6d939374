-- Locks an effect before the deliveries that have to do with it. Transactions that only refer to
-- it are not in the way.
SELECT e.state, e.receipt, e.route, e.epoch, e.unknowns
FROM oncebox.effects AS e
WHERE e.key = $1
FOR NO KEY UPDATE;
