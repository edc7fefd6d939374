-- The timeline from the name of a segment: that of the control file lags a promotion by minutes.
-- A server in recovery refuses to name one, even while it plans the statement, hence the NULL.
SELECT system_identifier,
    left(
        pg_walfile_name(CASE WHEN NOT pg_is_in_recovery() THEN '0/1000000'::pg_lsn END), 8
    )
FROM pg_control_system();
