SELECT greatest(
    pg_relation_size('oncebox.effects'),
    pg_relation_size('oncebox.unanswered'),
    pg_relation_size('oncebox.outbox_groups')
) / current_setting('block_size')::bigint;
