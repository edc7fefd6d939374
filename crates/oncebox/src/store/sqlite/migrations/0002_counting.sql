-- Counts deliveries as they move and go. Those that come are counted by who inserts them, once for
-- a batch: a trigger costs each new event a third of its insert. This step can run again.
DROP TRIGGER IF EXISTS deliveries_came;
DROP TRIGGER IF EXISTS deliveries_moved;
CREATE TRIGGER deliveries_moved AFTER UPDATE OF state, reason ON deliveries
WHEN NEW.state <> OLD.state OR NEW.reason IS NOT OLD.reason
BEGIN
    UPDATE delivery_counts
    SET count = count - 1
    WHERE route = OLD.route AND state = OLD.state AND reason = coalesce(OLD.reason, '');
    INSERT INTO delivery_counts (route, state, reason, count, came)
    VALUES (NEW.route, NEW.state, coalesce(NEW.reason, ''), 1, 1)
    ON CONFLICT (route, state, reason) DO UPDATE SET count = count + 1, came = came + 1;
END;

DROP TRIGGER IF EXISTS deliveries_went;
CREATE TRIGGER deliveries_went AFTER DELETE ON deliveries
BEGIN
    UPDATE delivery_counts
    SET count = count - 1
    WHERE route = OLD.route AND state = OLD.state AND reason = coalesce(OLD.reason, '');
END;

DROP TRIGGER IF EXISTS finished_came;
CREATE TRIGGER finished_came AFTER INSERT ON finished
BEGIN
    INSERT INTO delivery_counts (route, state, reason, count, came)
    VALUES (NEW.route, NEW.state, coalesce(NEW.reason, ''), 1, 1)
    ON CONFLICT (route, state, reason) DO UPDATE SET count = count + 1, came = came + 1;
END;

DROP TRIGGER IF EXISTS finished_went;
CREATE TRIGGER finished_went AFTER DELETE ON finished
BEGIN
    UPDATE delivery_counts
    SET count = count - 1
    WHERE route = OLD.route AND state = OLD.state AND reason = coalesce(OLD.reason, '');
END;
