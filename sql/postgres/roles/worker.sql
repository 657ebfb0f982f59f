-- What the role of `cairnq run` needs with migrate = false: a client's rights, settling, retention and its duty's row.
-- Literals: schema, role (identifiers). Locks: catalog.
grant usage on schema ^schema to ^role;
grant select on cairnq_tasks, cairnq_task_keys, cairnq_meta, cairnq_migrations to ^role;
grant insert, update, delete on cairnq_tasks to ^role;
grant insert, update on cairnq_task_keys, cairnq_meta to ^role;
