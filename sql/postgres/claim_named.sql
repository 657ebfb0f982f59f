-- Claim up to :limit due tasks of :names from :queues, highest priority first, then run_at, then id.
-- Params: :queues text[], :names text[], :worker_id text, :lease_ms bigint, :limit bigint. Result: task columns, in no order.
-- Locks: each claimed row, SKIP LOCKED; where sources are merged also up to :limit rows of each, until commit.
-- A look at the names that are queued decides the way, within one snapshot: where all are ours, the queue is walked
-- in claim order as without a filter; where a foreign name stands among them (thousands of its rows may lie ahead of
-- ours), each of our names is walked by itself and the walks are merged.
with picked as materialized (
    select c.id
    from unnest(:queues::text[]) as q (queue)
    cross join lateral (
        with recursive present (name) as (
            (
                select t.name from cairnq_tasks t
                where t.status = 'queued' and t.queue = q.queue
                order by t.name limit 1
            )
            union all
            select (
                select t.name from cairnq_tasks t
                where t.status = 'queued' and t.queue = q.queue and t.name > p.name
                order by t.name limit 1
            )
            from present p where p.name = any (:names::text[])
        )
        select exists (select from present p where p.name <> all (:names::text[])) as mixed
    ) look
    cross join lateral (
        (
            with recursive ladder (priority) as (
                (
                    select t.priority from cairnq_tasks t
                    where t.status = 'queued' and t.queue = q.queue and not look.mixed
                    order by t.priority desc limit 1
                )
                union all
                select (
                    select t.priority from cairnq_tasks t
                    where t.status = 'queued' and t.queue = q.queue and t.priority < l.priority
                    order by t.priority desc limit 1
                )
                from ladder l where l.priority is not null
            )
            select d.id, d.priority, d.run_at_ms
            from ladder l
            cross join lateral (
                select t.id, t.priority, t.run_at_ms from cairnq_tasks t
                where t.status = 'queued' and t.queue = q.queue and t.priority = l.priority
                    and t.run_at_ms <= (select @now_ms) and t.name = any (:names::text[])
                order by t.run_at_ms, t.id
                limit :limit::bigint
                for no key update skip locked
            ) d
            limit :limit::bigint
        )
        union all
        (
            select e.id, e.priority, e.run_at_ms
            from unnest(:names::text[]) as n (name)
            cross join lateral (
                with recursive ladder (priority) as (
                    (
                        select t.priority from cairnq_tasks t
                        where t.status = 'queued' and t.queue = q.queue and t.name = n.name and look.mixed
                        order by t.priority desc limit 1
                    )
                    union all
                    select (
                        select t.priority from cairnq_tasks t
                        where t.status = 'queued' and t.queue = q.queue and t.name = n.name
                            and t.priority < l.priority
                        order by t.priority desc limit 1
                    )
                    from ladder l where l.priority is not null
                )
                select d.id, d.priority, d.run_at_ms
                from ladder l
                cross join lateral (
                    select t.id, t.priority, t.run_at_ms from cairnq_tasks t
                    where t.status = 'queued' and t.queue = q.queue and t.name = n.name
                        and t.priority = l.priority and t.run_at_ms <= (select @now_ms)
                    order by t.run_at_ms, t.id
                    limit :limit::bigint
                    for no key update skip locked
                ) d
                limit :limit::bigint
            ) e
        )
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
where t.id = any (array(select p.id from picked p))
returning @task_columns
