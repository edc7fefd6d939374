SELECT
    greatest(
        (
            SELECT max(pg_relation_size(i.inhrelid))
            FROM pg_inherits AS i
            WHERE i.inhparent IN ('oncebox.identities'::regclass, 'oncebox.guards'::regclass)
        ),
        pg_relation_size('oncebox.lanes'),
        pg_relation_size('oncebox.operations')
    ) / current_setting('block_size')::bigint;
