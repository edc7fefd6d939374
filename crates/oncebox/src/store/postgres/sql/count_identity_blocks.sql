SELECT pg_relation_size('oncebox.identities') / current_setting('block_size')::bigint;
