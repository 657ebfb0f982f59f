-- Settle attempts that one worker holds: complete, succeed, fail, release, crash. One row a settlement, each id once.
-- Params: :worker_id; arrays of one length :ids, :attempts (null: whichever is held), :outcomes, :bodies (JSON: a result
--   or an error), :delays_ms. Result: id, status now. A row that is missing was not held. Locks: the file's writer.
with settlement (id, attempt, outcome, body, delay_ms) as materialized (
    select json_extract(s.value, '$[0]'), json_extract(s.value, '$[1]'), json_extract(s.value, '$[2]'),
        json_extract(s.value, '$[3]'), json_extract(s.value, '$[4]')
    from json_each(:(ids, attempts, outcomes, bodies, delays_ms)) s
),
held as materialized (
    select t.id, s.outcome, s.body, s.delay_ms,
        case
            when s.outcome = 'succeed' then 'succeeded'
            when t.cancel_requested_at_ms is not null then 'canceled'
            when s.outcome = 'complete' then 'succeeded'
            when s.outcome = 'release' then 'queued'
            when s.outcome in ('interrupt', 'suspect') and t.max_attempts > 1 then 'queued'
            when s.outcome in ('fail', 'crash') and t.attempt < t.max_attempts then 'queued'
            else 'failed'
        end as status
    from settlement s
    cross join cairnq_tasks t on t.id = s.id
    where t.status = 'running'
        and +t.worker_id = :worker_id
        and (s.attempt is null or t.attempt = s.attempt)
        and t.lease_until_ms > (select @now_ms)
)
update cairnq_tasks as t
set status = h.status,
    result = case when h.status = 'succeeded' then h.body else t.result end,
    error = case
        when h.outcome in ('fail', 'fail_permanently') then h.body
        when h.outcome = 'interrupt' and h.status = 'failed' then h.body
        when h.outcome in ('crash', 'suspect') then json_set(h.body, '$.details.suspect', @marked)
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
where t.id = h.id
returning id, status
