-- Deliveries are counted by triggers, so that no statement and no function of any door can forget
-- it: one call for each statement, however many rows it writes. This step can run again.
CREATE OR REPLACE FUNCTION oncebox.count_came() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO oncebox.delivery_deltas (minute, came, went, route, state, reason)
    SELECT
        floor(extract(epoch FROM clock_timestamp()) / 60)::integer, count(*), 0, c.route, c.state,
        coalesce(c.reason, '')
    FROM came AS c
    GROUP BY c.route, c.state, c.reason;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION oncebox.count_went() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO oncebox.delivery_deltas (minute, came, went, route, state, reason)
    SELECT
        floor(extract(epoch FROM clock_timestamp()) / 60)::integer, 0, count(*), w.route, w.state,
        coalesce(w.reason, '')
    FROM went AS w
    GROUP BY w.route, w.state, w.reason;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION oncebox.count_moved() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO oncebox.delivery_deltas (minute, came, went, route, state, reason)
    SELECT
        floor(extract(epoch FROM clock_timestamp()) / 60)::integer, greatest(sum(m.n), 0),
        greatest(-sum(m.n), 0), m.route, m.state, coalesce(m.reason, '')
    FROM (
        SELECT 1 AS n, c.route, c.state, c.reason FROM came AS c
        UNION ALL
        SELECT -1, w.route, w.state, w.reason FROM went AS w
    ) AS m
    GROUP BY m.route, m.state, m.reason
    HAVING sum(m.n) <> 0;
    RETURN NULL;
END
$$;

DROP TRIGGER IF EXISTS came ON oncebox.deliveries;
CREATE TRIGGER came AFTER INSERT ON oncebox.deliveries
REFERENCING NEW TABLE AS came
FOR EACH STATEMENT EXECUTE FUNCTION oncebox.count_came();

DROP TRIGGER IF EXISTS moved ON oncebox.deliveries;
CREATE TRIGGER moved AFTER UPDATE ON oncebox.deliveries
REFERENCING OLD TABLE AS went NEW TABLE AS came
FOR EACH STATEMENT EXECUTE FUNCTION oncebox.count_moved();

DROP TRIGGER IF EXISTS went ON oncebox.deliveries;
CREATE TRIGGER went AFTER DELETE ON oncebox.deliveries
REFERENCING OLD TABLE AS went
FOR EACH STATEMENT EXECUTE FUNCTION oncebox.count_went();

DROP TRIGGER IF EXISTS came ON oncebox.finished;
CREATE TRIGGER came AFTER INSERT ON oncebox.finished
REFERENCING NEW TABLE AS came
FOR EACH STATEMENT EXECUTE FUNCTION oncebox.count_came();

DROP TRIGGER IF EXISTS moved ON oncebox.finished;
CREATE TRIGGER moved AFTER UPDATE ON oncebox.finished
REFERENCING OLD TABLE AS went NEW TABLE AS came
FOR EACH STATEMENT EXECUTE FUNCTION oncebox.count_moved();

DROP TRIGGER IF EXISTS went ON oncebox.finished;
CREATE TRIGGER went AFTER DELETE ON oncebox.finished
REFERENCING OLD TABLE AS went
FOR EACH STATEMENT EXECUTE FUNCTION oncebox.count_went();

REVOKE ALL ON FUNCTION oncebox.count_came(), oncebox.count_went(), oncebox.count_moved()
FROM PUBLIC;
