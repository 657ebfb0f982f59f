-- Take back tasks whose lease has run out, of all queues, whoever held them.
-- Params: :error (the lease_expired envelope), :limit. Result: id, status now. Locks: the file's writer.
with expired as materialized (
    select t.id,
        case
            when t.cancel_requested_at_ms is not null then 'canceled'
            when t.attempt < t.max_attempts then 'queued'
            else 'failed'
        end as status
    from cairnq_tasks t indexed by cairnq_lean_running_idx
    where t.status = 'running' and t.lease_until_ms <= (select @now_ms)
    limit :limit
)
update cairnq_tasks as t
set status = e.status,
    error = case when e.status = 'failed' then :error else t.error end,
    progress = case when e.status = 'queued' then null else t.progress end,
    message = case when e.status = 'queued' then null else t.message end,
    worker_id = case when e.status = 'queued' then null else t.worker_id end,
    lease_until_ms = null,
    run_at_ms = case when e.status = 'queued' then @now_ms else t.run_at_ms end,
    updated_at_ms = @now_ms,
    completed_at_ms = case when e.status = 'queued' then null else @now_ms end
from expired e
where t.id = e.id
returning id, status
