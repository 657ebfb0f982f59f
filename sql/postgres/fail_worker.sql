-- Fail, retryably and with backoff, whatever a dead worker still holds.
-- Params: :worker_id text, :error text (JSON envelope), :backoff_ms bigint (the window of the first attempt, 0: none),
--   :backoff_max_ms bigint. Result: id, status now. Locks: rows in id order, SKIP LOCKED.
-- The delay falls into the upper half of min(:backoff_max_ms, :backoff_ms * 2^(attempt-1)).
with running as materialized (
    select t.id from cairnq_tasks t where t.status = 'running' and t.worker_id = :worker_id::text
),
held as materialized (
    select l.place,
        case
            when l.cancel_requested then 'canceled'
            when l.attempt < l.max_attempts then 'queued'
            else 'failed'
        end as status,
        least(:backoff_max_ms::bigint, :backoff_ms::bigint * power(2, least(l.attempt - 1, 40))) as backoff_window
    from (select r.id from running r order by r.id) ordered
    cross join lateral (
        select t.ctid as place, t.attempt, t.max_attempts, t.cancel_requested_at_ms is not null as cancel_requested
        from cairnq_tasks t
        where t.id = ordered.id
            and t.status = (select 'running')
            and t.worker_id is not distinct from :worker_id::text
            and t.lease_until_ms > (select @now_ms)
        for no key update skip locked
    ) l
)
update cairnq_tasks t
set status = h.status,
    error = :error::text::jsonb,
    progress = case when h.status = 'queued' then null else t.progress end,
    message = case when h.status = 'queued' then null else t.message end,
    worker_id = case when h.status = 'queued' then null else t.worker_id end,
    lease_until_ms = null,
    run_at_ms = case
        when h.status = 'queued' then @now_ms + floor(h.backoff_window * (0.5 + random() / 2))::bigint
        else t.run_at_ms
    end,
    updated_at_ms = @now_ms,
    completed_at_ms = case when h.status = 'queued' then null else @now_ms end
from held h
where t.ctid = h.place
returning t.id, t.status
