-- What the server allows and how full it is. Params: none. Locks: none.
-- Result: one row: version number, most connections (of the server, the database, the role: the least), connections
--   that only superusers get, connections open now, this session's backend pid, the clock in epoch ms.
select current_setting('server_version_num')::integer,
    least(
        current_setting('max_connections')::integer,
        (select nullif(d.datconnlimit, -1) from pg_catalog.pg_database d where d.datname = current_database()),
        (select nullif(r.rolconnlimit, -1) from pg_catalog.pg_roles r where r.rolname = current_user)
    ),
    current_setting('superuser_reserved_connections')::integer,
    (select sum(s.numbackends)::integer from pg_catalog.pg_stat_database s),
    pg_backend_pid(),
    @now_ms
