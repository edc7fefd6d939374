-- One at a time, so that numbers are given out without gaps and renames do not cross.
SELECT pg_advisory_xact_lock(7380532412033512);
