-- Claim one due suspect of :names from :queues, for a process that runs nothing beside it.
-- Params: :queues text[], :names text[], :worker_id text, :lease_ms bigint. Result: task columns.
-- Locks: the claimed row, SKIP LOCKED; with several queues one row of each, until commit.
with picked as materialized (
    select c.place
    from unnest(:queues::text[]) as q (queue)
    cross join lateral (
        select t.ctid as place, t.id, t.priority, t.run_at_ms from cairnq_tasks t
        where t.status = 'queued' and t.queue = q.queue and @suspect
            and t.name = any (:names::text[]) and t.run_at_ms <= (select @now_ms)
        order by t.priority desc, t.run_at_ms, t.id
        limit 1
        for no key update skip locked
    ) c
    order by c.priority desc, c.run_at_ms, c.id
    limit 1
)
update cairnq_tasks t
set status = 'running',
    attempt = t.attempt + 1,
    worker_id = :worker_id::text,
    lease_until_ms = @now_ms + :lease_ms::bigint,
    updated_at_ms = @now_ms
where t.ctid = any (array(select p.place from picked p))
returning @task_columns
