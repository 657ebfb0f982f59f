-- Report progress of a running task; null means "leave it".
-- Params: :id, :worker_id, :attempt (null: whichever is held), :progress, :message.
-- Result: task columns; no row: the lease is lost. Locks: the file's writer.
update cairnq_tasks as t
set progress = coalesce(:progress, t.progress),
    message = coalesce(:message, t.message),
    updated_at_ms = @now_ms
where t.id = :id
    and t.status = 'running'
    and +t.worker_id = :worker_id
    and t.attempt = coalesce(:attempt, t.attempt)
    and t.lease_until_ms > (select @now_ms)
returning @returned_columns
