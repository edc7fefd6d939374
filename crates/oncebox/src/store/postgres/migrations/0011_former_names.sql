-- Names that sources and routes had before: they still lead to the same one, so that a node that
-- starts with the old configuration while others were renamed makes no second source.
CREATE TABLE IF NOT EXISTS oncebox.former_source_names (
    name text PRIMARY KEY,
    source smallint NOT NULL
);

CREATE TABLE IF NOT EXISTS oncebox.former_route_names (
    name text PRIMARY KEY,
    route smallint NOT NULL
);
