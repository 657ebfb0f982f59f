-- Cancel a live task: a queued one ends, a running one is asked to (the first request's time stays).
-- Params: :id text. Result: task columns; no row: it is not there, or terminal. Locks: the row.
update cairnq_tasks t
set status = case when t.status = 'queued' then 'canceled' else t.status end,
    cancel_requested_at_ms = case
        when t.status = 'running' then coalesce(t.cancel_requested_at_ms, @now_ms)
        else t.cancel_requested_at_ms
    end,
    completed_at_ms = case when t.status = 'queued' then @now_ms else t.completed_at_ms end,
    updated_at_ms = @now_ms
where t.id = :id::text and t.status in ('queued', 'running')
returning @task_columns
