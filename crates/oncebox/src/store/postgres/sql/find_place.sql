-- The timeline from the name of a segment: that of the control file lags a promotion by minutes.
-- A server in recovery refuses to name one.
SELECT system_identifier,
    CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name('0/1000000'), 8) END
FROM pg_control_system();
