-- Settle attempts that one worker holds: complete, succeed, fail, release. One row a settlement.
-- Params: :worker_id text; arrays of one length :ids text[], :attempts integer[] (null: whichever is held),
--   :outcomes text[], :bodies text[] (JSON: a result or an error), :delays_ms bigint[].
-- Result: id, attempt that was settled, status now. A row that is missing was not held, or its lock was.
-- Locks: rows in id order, SKIP LOCKED. Rows are found by id alone: `(select 'running')` and `is not distinct from`
-- keep the planner off the index of what runs, which with statistics of an idle hour it would read from end to end.
with settlement as (
    select s.id, s.attempt, s.outcome, s.body, s.delay_ms
    from unnest(
        :ids::text[], :attempts::integer[], :outcomes::text[], :bodies::text[], :delays_ms::bigint[]
    ) as s (id, attempt, outcome, body, delay_ms)
),
held as materialized (
    select t.id, t.attempt, s.outcome, s.body, s.delay_ms,
        case
            when s.outcome = 'succeed' then 'succeeded'
            when t.cancel_requested_at_ms is not null then 'canceled'
            when s.outcome = 'complete' then 'succeeded'
            when s.outcome = 'release' then 'queued'
            when s.outcome = 'interrupt' and t.max_attempts > 1 then 'queued'
            when s.outcome = 'fail' and t.attempt < t.max_attempts then 'queued'
            else 'failed'
        end as status
    from cairnq_tasks t
    join settlement s on s.id = t.id
    where t.id = any (:ids::text[])
        and t.status = (select 'running')
        and t.worker_id is not distinct from :worker_id::text
        and (s.attempt is null or t.attempt = s.attempt)
        and t.lease_until_ms > (select @now_ms)
    order by t.id
    for no key update of t skip locked
)
update cairnq_tasks t
set status = h.status,
    result = case when h.status = 'succeeded' then h.body::jsonb else t.result end,
    error = case
        when h.outcome in ('fail', 'fail_permanently') then h.body::jsonb
        when h.outcome = 'interrupt' and h.status = 'failed' then h.body::jsonb
        else t.error
    end,
    progress = case h.status when 'succeeded' then 1.0 when 'queued' then null else t.progress end,
    message = case when h.status = 'queued' then null else t.message end,
    attempt = case when h.outcome in ('release', 'interrupt') and h.status = 'queued' then t.attempt - 1 else t.attempt end,
    worker_id = case when h.status = 'queued' then null else t.worker_id end,
    lease_until_ms = null,
    run_at_ms = case when h.outcome = 'fail' and h.status = 'queued' then @now_ms + h.delay_ms else t.run_at_ms end,
    updated_at_ms = @now_ms,
    completed_at_ms = case when h.status = 'queued' then null else @now_ms end
from held h
where t.id = h.id
returning t.id, h.attempt, t.status
