-- Who began an effect and gave no answer before somebody else took it over, or a person said what
-- came of it: a row for each lease. What one of those says later is evidence, and what anybody else
-- says is not. It outlives the effect: a person who says that it did not happen may be wrong.
CREATE TABLE unanswered (
    key TEXT NOT NULL,
    receipt INTEGER NOT NULL,
    tail INTEGER NOT NULL,
    route INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('once', 'step')),
    at INTEGER NOT NULL,
    PRIMARY KEY (key, receipt, route, epoch)
) STRICT, WITHOUT ROWID;
