-- Changes nothing, and its commit waits for disk and standby as any other.
SELECT pg_logical_emit_message(true, 'oncebox', 'ready?');
