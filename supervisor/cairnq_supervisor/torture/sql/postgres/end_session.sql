-- End a session: pid.
select pg_terminate_backend(%s)
