-- Cancel a live task: a queued one ends, a running one is asked to (the first request's time stays).
-- Params: :id. Result: task columns; no row: it is not there, or terminal. Locks: the file's writer.
update cairnq_tasks as t
set status = case when t.status = 'queued' then 'canceled' else t.status end,
    cancel_requested_at_ms = case
        when t.status = 'running' then coalesce(t.cancel_requested_at_ms, @now_ms)
        else t.cancel_requested_at_ms
    end,
    completed_at_ms = case when t.status = 'queued' then @now_ms else t.completed_at_ms end,
    updated_at_ms = @now_ms
where t.id = :id and t.status in ('queued', 'running')
returning @returned_columns
