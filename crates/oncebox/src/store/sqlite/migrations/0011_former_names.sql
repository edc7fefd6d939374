-- Names that sources and routes had before: they still lead to the same one, so that a node that
-- starts with the old configuration makes no second source.
CREATE TABLE IF NOT EXISTS former_source_names (
    name TEXT PRIMARY KEY,
    source INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS former_route_names (
    name TEXT PRIMARY KEY,
    route INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
