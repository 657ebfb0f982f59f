-- Settle attempts that one worker holds: complete, succeed, fail, release, crash. One row a settlement, each id once.
-- Params: :worker_id text; arrays of one length :ids text[], :attempts integer[] (null: whichever is held),
--   :outcomes text[], :bodies text[] (JSON: a result or an error), :delays_ms bigint[].
-- Result: id, status now. A row that is missing was not held, or its lock was.
-- Locks: rows in id order, SKIP LOCKED; the variant `waiting`, for one task, waits and looks at the lease again. Rows
-- are found by id alone: `(select 'running')` and `is not distinct from` keep the planner off the index of what runs,
-- which with statistics of an idle hour it would read from end to end. Once locked, a row is found by its place.
with settlement as materialized (
    select s.id, s.attempt, s.outcome, s.body, s.delay_ms
    from unnest(
        :ids::text[], :attempts::integer[], :outcomes::text[], :bodies::text[], :delays_ms::bigint[]
    ) as s (id, attempt, outcome, body, delay_ms)
    order by s.id
),
held as materialized (
    select l.id, l.place, l.attempt, s.outcome, s.body, s.delay_ms,
        case
            when s.outcome = 'succeed' then 'succeeded'
            when l.cancel_requested then 'canceled'
            when s.outcome = 'complete' then 'succeeded'
            when s.outcome = 'release' then 'queued'
            when s.outcome in ('interrupt', 'suspect') and l.max_attempts > 1 then 'queued'
            when s.outcome in ('fail', 'crash') and l.attempt < l.max_attempts then 'queued'
            else 'failed'
        end as status
    from settlement s
    cross join lateral (
        select t.id, t.ctid as place, t.attempt, t.max_attempts, t.cancel_requested_at_ms is not null as cancel_requested
        from cairnq_tasks t
        where t.id = s.id
            and t.status = (select 'running')
            and t.worker_id is not distinct from :worker_id::text
            and (s.attempt is null or t.attempt = s.attempt)
            and t.lease_until_ms > (select @now_ms)
        for no key update
        skip locked -- unless waiting
    ) l
)
update cairnq_tasks t
set status = h.status,
    result = case when h.status = 'succeeded' then h.body::jsonb else t.result end,
    error = case
        when h.outcome in ('fail', 'fail_permanently') then h.body::jsonb
        when h.outcome = 'interrupt' and h.status = 'failed' then h.body::jsonb
        when h.outcome in ('crash', 'suspect') then jsonb_set(h.body::jsonb, '{details, suspect}', @marked)
        else t.error
    end,
    progress = case h.status when 'succeeded' then 1.0 when 'queued' then null else t.progress end,
    message = case when h.status = 'queued' then null else t.message end,
    attempt = case when h.outcome in ('release', 'interrupt', 'suspect') and h.status = 'queued' then t.attempt - 1 else t.attempt end,
    worker_id = case when h.status = 'queued' then null else t.worker_id end,
    lease_until_ms = null,
    run_at_ms = case
        when h.outcome in ('fail', 'crash', 'suspect') and h.status = 'queued' then @now_ms + h.delay_ms
        else t.run_at_ms
    end,
    updated_at_ms = @now_ms,
    completed_at_ms = case when h.status = 'queued' then null else @now_ms end
from held h
where t.ctid = h.place -- unless waiting
where t.id = h.id and t.id = any (array(select a.id from held a)) and t.lease_until_ms > @now_ms -- if waiting
returning t.id, t.status
