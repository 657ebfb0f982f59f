-- Take back tasks whose lease has run out, of all queues, whoever held them.
-- Params: :error text (the lease_expired envelope), :limit bigint. Result: id, status now.
-- Locks: rows in id order, SKIP LOCKED.
-- `stale` reads the index of what is running (there is none on the lease, which every beat writes) without an order,
-- or the planner would walk the primary key to avoid a sort; so does `running` in fail_worker.
with stale as materialized (
    select t.id from cairnq_tasks t
    where t.status = 'running' and t.lease_until_ms <= (select @now_ms)
    limit :limit::bigint
),
expired as materialized (
    select l.place,
        case
            when l.cancel_requested then 'canceled'
            when l.attempt < l.max_attempts then 'queued'
            else 'failed'
        end as status
    from (select s.id from stale s order by s.id) ordered
    cross join lateral (
        select t.ctid as place, t.attempt, t.max_attempts, t.cancel_requested_at_ms is not null as cancel_requested
        from cairnq_tasks t
        where t.id = ordered.id and t.status = (select 'running') and t.lease_until_ms <= (select @now_ms)
        for no key update skip locked
    ) l
)
update cairnq_tasks t
set status = e.status,
    error = case when e.status = 'failed' then :error::text::jsonb else t.error end,
    progress = case when e.status = 'queued' then null else t.progress end,
    message = case when e.status = 'queued' then null else t.message end,
    worker_id = case when e.status = 'queued' then null else t.worker_id end,
    lease_until_ms = null,
    run_at_ms = case when e.status = 'queued' then @now_ms else t.run_at_ms end,
    updated_at_ms = @now_ms,
    completed_at_ms = case when e.status = 'queued' then null else @now_ms end
from expired e
where t.ctid = e.place
returning t.id, t.status
