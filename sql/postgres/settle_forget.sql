-- Settle successes of handlers that forget: the row is removed, unless a key points at it or a cancel was asked.
-- Params: :worker_id text; arrays of one length :ids text[], :attempts integer[], :bodies text[] (JSON results).
-- Result: id, attempt, status (`succeeded` for a removed row too). A row that is missing was not held, or its lock was.
-- Locks: rows in id order, FOR UPDATE (they are deleted) SKIP LOCKED. Sends cairnq_done for each removed row, as the
-- trigger does for each that stays.
with settlement as materialized (
    select s.id, s.attempt, s.body
    from unnest(:ids::text[], :attempts::integer[], :bodies::text[]) as s (id, attempt, body)
    order by s.id
),
held as materialized (
    select l.id, l.attempt, s.body, l.status
    from settlement s
    cross join lateral (
        select t.id, t.attempt,
            case when t.cancel_requested_at_ms is null then 'succeeded' else 'canceled' end as status
        from cairnq_tasks t
        where t.id = s.id
            and t.status = (select 'running')
            and t.worker_id is not distinct from :worker_id::text
            and t.attempt = s.attempt
            and t.lease_until_ms > (select @now_ms)
        for update skip locked
    ) l
),
fate as materialized (
    select h.id, h.attempt, h.body, h.status,
        h.status = 'succeeded' and not exists (select from cairnq_task_keys k where k.task_id = h.id) as forgotten
    from held h
),
removed as (
    delete from cairnq_tasks t
    where t.id = any (array(select f.id from fate f where f.forgotten))
    returning t.id
),
kept as (
    update cairnq_tasks t
    set status = f.status,
        result = case when f.status = 'succeeded' then f.body::jsonb else t.result end,
        progress = case when f.status = 'succeeded' then 1.0 else t.progress end,
        lease_until_ms = null,
        updated_at_ms = @now_ms,
        completed_at_ms = @now_ms
    from fate f
    where t.id = f.id and not f.forgotten and t.id = any (array(select a.id from fate a where not a.forgotten))
    returning t.id
)
select f.id, f.attempt, f.status, case when f.forgotten then pg_notify('cairnq_done', f.id) end
from fate f
where f.id in (select r.id from removed r union all select k.id from kept k)
