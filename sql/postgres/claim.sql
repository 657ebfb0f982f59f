-- Claim up to :limit due tasks of any name from :queues, highest priority first, then run_at, then id.
-- Params: :queues text[], :worker_id text, :lease_ms bigint, :limit bigint. Result: task columns, in no order.
--   `onward`: :from_priority integer, :from_run_at_ms bigint, :from_id text; begin there unless a higher priority waits.
-- Locks: each claimed row, SKIP LOCKED; with several queues also up to :limit rows of each, until commit.
-- The ladder steps through the priorities that are present, so that one full of rows in backoff costs one look and
-- not a walk; within one the walk begins where the ladder did, past the entries of what was claimed before.
with picked as materialized (
    select c.place
    from unnest(:queues::text[]) as q (queue)
    cross join lateral (
        with recursive ladder (priority, run_at_ms, id) as (
            (
                @from_place -- if onward
                union all -- if onward
                (
                    select t.priority, t.run_at_ms, t.id from cairnq_tasks t
                    where t.status = 'queued' and t.queue = q.queue
                    order by t.priority desc, t.run_at_ms, t.id limit 1
                )
                limit 1 -- if onward
            )
            union all
            select n.priority, n.run_at_ms, n.id
            from ladder l
            cross join lateral (
                select t.priority, t.run_at_ms, t.id from cairnq_tasks t
                where t.status = 'queued' and t.queue = q.queue and t.priority < l.priority
                order by t.priority desc, t.run_at_ms, t.id limit 1
            ) n
        )
        select d.place, d.id, d.priority, d.run_at_ms
        from ladder l
        cross join lateral (
            select t.ctid as place, t.id, t.priority, t.run_at_ms from cairnq_tasks t
            where t.status = 'queued' and t.queue = q.queue and t.priority = l.priority
                and (t.run_at_ms, t.id) >= (l.run_at_ms, l.id) and t.run_at_ms <= (select @now_ms)
                and (@suspect) is not true
            order by t.run_at_ms, t.id
            limit :limit::bigint
            for no key update skip locked
        ) d
        limit :limit::bigint
    ) c
    order by c.priority desc, c.run_at_ms, c.id
    limit :limit::bigint
)
update cairnq_tasks t
set status = 'running',
    attempt = t.attempt + 1,
    worker_id = :worker_id::text,
    lease_until_ms = @now_ms + :lease_ms::bigint,
    updated_at_ms = @now_ms
where t.ctid = any (array(select p.place from picked p))
returning @task_columns
