-- What this role may do in the schema. Params: :schema text. Locks: none.
-- Result: one row: may create schemas in this database, may use the schema, may create in it (both null where there is
--   none), owns the tables (null where there are none), the rights it lacks on the tables, as text[].
select has_database_privilege(current_database(), 'create'),
    has_schema_privilege(n.oid, 'usage'),
    has_schema_privilege(n.oid, 'create'),
    (
        select bool_and(pg_has_role(c.relowner, 'usage')) from pg_catalog.pg_class c
        where c.relnamespace = n.oid and c.relkind in ('r', 'p')
            and c.relname = any (array['cairnq_tasks', 'cairnq_task_keys', 'cairnq_meta', 'cairnq_migrations'])
    ),
    array(
        select w.privilege || ' on ' || c.relname
        from (values
            ('cairnq_tasks', 'select'), ('cairnq_tasks', 'insert'), ('cairnq_tasks', 'update'),
            ('cairnq_tasks', 'delete'), ('cairnq_task_keys', 'select'), ('cairnq_task_keys', 'insert'),
            ('cairnq_task_keys', 'update'), ('cairnq_meta', 'select'), ('cairnq_meta', 'insert'),
            ('cairnq_meta', 'update'), ('cairnq_migrations', 'select')
        ) as w (relation, privilege)
        join pg_catalog.pg_class c on c.relname = w.relation and c.relnamespace = n.oid and c.relkind in ('r', 'p')
        where not has_table_privilege(c.oid, w.privilege)
        order by 1
    )
from (values (1)) as one (row)
left join pg_catalog.pg_namespace n on n.nspname = :schema::text
