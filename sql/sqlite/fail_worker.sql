-- Fail, retryably and with backoff, whatever a dead worker still holds.
-- Params: :worker_id, :error (JSON envelope), :backoff_ms (the window of the first attempt, 0: none), :backoff_max_ms.
-- Result: id, status now. Locks: the file's writer.
-- The delay falls into the upper half of min(:backoff_max_ms, :backoff_ms * 2^(attempt-1)); the comparison is made on
-- the side that shifts down, for the other overflows.
with held as materialized (
    select t.id,
        case
            when t.cancel_requested_at_ms is not null then 'canceled'
            when t.attempt < t.max_attempts then 'queued'
            else 'failed'
        end as status,
        case
            when (:backoff_max_ms >> min(t.attempt - 1, 62)) < :backoff_ms then :backoff_max_ms
            else :backoff_ms << min(t.attempt - 1, 62)
        end as backoff_window
    from cairnq_tasks t indexed by cairnq_lean_running_idx
    where t.status = 'running'
        and t.worker_id = :worker_id
        and t.lease_until_ms > (select @now_ms)
)
update cairnq_tasks as t
set status = h.status,
    error = :error,
    progress = case when h.status = 'queued' then null else t.progress end,
    message = case when h.status = 'queued' then null else t.message end,
    worker_id = case when h.status = 'queued' then null else t.worker_id end,
    lease_until_ms = null,
    run_at_ms = case
        when h.status = 'queued'
            then @now_ms + cast(h.backoff_window * (0.5 + (random() & 1048575) / 2097152.0) as integer)
        else t.run_at_ms
    end,
    updated_at_ms = @now_ms,
    completed_at_ms = case when h.status = 'queued' then null else @now_ms end
from held h
where t.id = h.id
returning id, status
