-- Ends sessions of this role that belong to programs of an epoch below $1 and began before $2, and
-- tells how many there were. Their application name ends with their epoch. A session that began
-- later has read the new epoch and is refused.
SELECT count(pg_terminate_backend(a.pid))
FROM pg_stat_activity AS a
WHERE a.datname = current_database()
  AND a.usename = session_user
  AND a.pid <> pg_backend_pid()
  AND a.backend_start <= $2
  AND a.application_name ~ '/e[0-9]{1,9}$'
  AND substring(a.application_name FROM '/e([0-9]+)$')::integer < $1;
