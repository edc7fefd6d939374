-- Who began an effect and gave no answer before somebody else took it over, or a person said what
-- came of it: a row for each lease. What one of those says later is evidence, and what anybody else
-- says is not. It outlives the effect: a person who says that it did not happen may be wrong.
CREATE TABLE oncebox.unanswered (
    receipt uuid NOT NULL,
    epoch bigint NOT NULL,
    at timestamptz NOT NULL,
    attempt integer NOT NULL,
    route smallint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('once', 'step')),
    key text COLLATE "C" NOT NULL,
    PRIMARY KEY (key, receipt, route, epoch)
);
