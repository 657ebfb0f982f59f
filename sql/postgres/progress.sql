-- Report progress of a running task; null means "leave it".
-- Params: :id text, :worker_id text, :attempt integer (null: whichever is held), :progress double precision,
--   :message text. Result: task columns; no row: the lease is lost. Locks: the row.
update cairnq_tasks t
set progress = coalesce(:progress::double precision, t.progress),
    message = coalesce(:message::text, t.message),
    updated_at_ms = @now_ms
where t.id = :id::text
    and t.status = (select 'running')
    and t.worker_id is not distinct from :worker_id::text
    and t.attempt = coalesce(:attempt::integer, t.attempt)
    and t.lease_until_ms > (select @now_ms)
returning @task_columns
