-- Queue a failed or canceled task again, due now.
-- Params: :id, :reset_attempt. Result: task columns; no row: it is not there, live, or succeeded. Locks: the file's writer.
update cairnq_tasks as t
set status = 'queued',
    error = null,
    progress = null,
    message = null,
    attempt = case when :reset_attempt then 0 else t.attempt end,
    worker_id = null,
    lease_until_ms = null,
    run_at_ms = @now_ms,
    cancel_requested_at_ms = null,
    updated_at_ms = @now_ms,
    completed_at_ms = null
where t.id = :id and t.status in ('failed', 'canceled')
returning @returned_columns
