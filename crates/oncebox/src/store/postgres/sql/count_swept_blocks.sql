SELECT
    greatest(
        pg_relation_size('oncebox.identities'),
        pg_relation_size('oncebox.guards'),
        pg_relation_size('oncebox.lanes'),
        pg_relation_size('oncebox.operations')
    ) / current_setting('block_size')::bigint;
