-- Where does cairnq stand in this database, whatever this connection's search_path says?
-- Params: none. Result: one row: current_schema(), schemas that hold cairnq_tasks (sorted), in recovery, database, role.
select current_schema(),
    array(
        select n.nspname::text from pg_catalog.pg_class c
        join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where c.relname = 'cairnq_tasks' and c.relkind in ('r', 'p')
            and n.nspname <> all (array['pg_catalog', 'information_schema'])
            and not pg_catalog.pg_is_other_temp_schema(n.oid)
        order by 1
    ),
    pg_catalog.pg_is_in_recovery(),
    current_database()::text,
    current_user::text
