-- The server's processes that serve the fleets: name (an application_name).
select pid from pg_stat_activity where application_name = %s and pid <> pg_backend_pid() order by pid
