-- What a role needs that submits, reads, waits, cancels and retries. Literals: schema, role (identifiers). Locks: catalog.
-- It cannot settle (`result` is not its to write), purge, or migrate.
grant usage on schema ^schema to ^role;
grant select on cairnq_tasks, cairnq_task_keys, cairnq_meta, cairnq_migrations to ^role;
grant insert on cairnq_tasks, cairnq_task_keys to ^role;
grant update (
    status, error, progress, message, attempt, worker_id, lease_until_ms, run_at_ms, cancel_requested_at_ms,
    updated_at_ms, completed_at_ms
) on cairnq_tasks to ^role;
grant update (task_id, updated_at_ms) on cairnq_task_keys to ^role;
