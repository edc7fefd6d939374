-- One at a time, so that numbers are given out without gaps and renames do not cross. However long
-- it takes: another node may be giving its backlog new rules.
SELECT set_config('lock_timeout', '0', true), pg_advisory_xact_lock(7380532412033512);
