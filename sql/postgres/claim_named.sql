-- Claim up to :limit due tasks of :names from :queues, highest priority first, then run_at, then id.
-- Params: :queues text[], :names text[], :worker_id text, :lease_ms bigint, :limit bigint. Result: task columns, in no order.
--   `onward`: as in claim.sql.
-- Locks: each claimed row, SKIP LOCKED; where sources are merged also up to :limit rows of each, until commit.
-- A look into the gaps between our names decides the way: where neither a foreign name nor a suspect is queued, the
-- queue is walked in claim order (see claim.sql); where one is (thousands of such rows may lie ahead of ours), each of
-- our names is walked by itself, past its suspects, and the walks are merged.
with ours as materialized (
    select n.name, lead(n.name) over (order by n.name) as next_name
    from unnest(array['']::text[] || :names::text[]) as n (name)
),
picked as materialized (
    select c.place
    from unnest(:queues::text[]) as q (queue)
    cross join lateral (
        select exists (
            select from ours o
            cross join lateral (
                select from cairnq_tasks t
                where t.status = 'queued' and t.queue = q.queue and t.name > o.name and t.name < o.next_name
                order by t.name limit 1
            ) foreign_name
            where o.next_name is not null
        ) or exists (
            select from ours o
            cross join lateral (
                select from cairnq_tasks t
                where t.status = 'queued' and t.queue = q.queue and t.name > o.name
                order by t.name limit 1
            ) foreign_name
            where o.next_name is null
        ) or exists (
            select from cairnq_tasks t where t.status = 'queued' and t.queue = q.queue and @suspect
        ) as mixed
        offset 0 -- looked at once, not once for each way
    ) look
    cross join lateral (
        (
            with recursive ladder (priority, run_at_ms, id) as (
                (
                    @from_place and not look.mixed -- if onward
                    union all -- if onward
                    (
                        select t.priority, t.run_at_ms, t.id from cairnq_tasks t
                        where t.status = 'queued' and t.queue = q.queue and not look.mixed
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
                    and t.name = any (:names::text[]) and (@suspect) is not true
                order by t.run_at_ms, t.id
                limit :limit::bigint
                for no key update skip locked
            ) d
            limit :limit::bigint
        )
        union all
        (
            select e.place, e.id, e.priority, e.run_at_ms
            from unnest(:names::text[]) as n (name)
            cross join lateral (
                with recursive ladder (priority, run_at_ms, id) as (
                    (
                        select t.priority, t.run_at_ms, t.id from cairnq_tasks t
                        where t.status = 'queued' and t.queue = q.queue and t.name = n.name and @unsuspected
                            and look.mixed
                        order by t.priority desc, t.run_at_ms, t.id limit 1
                    )
                    union all
                    select m.priority, m.run_at_ms, m.id
                    from ladder l
                    cross join lateral (
                        select t.priority, t.run_at_ms, t.id from cairnq_tasks t
                        where t.status = 'queued' and t.queue = q.queue and t.name = n.name and @unsuspected
                            and t.priority < l.priority
                        order by t.priority desc, t.run_at_ms, t.id limit 1
                    ) m
                )
                select d.place, d.id, d.priority, d.run_at_ms
                from ladder l
                cross join lateral (
                    select t.ctid as place, t.id, t.priority, t.run_at_ms from cairnq_tasks t
                    where t.status = 'queued' and t.queue = q.queue and t.name = n.name and @unsuspected
                        and t.priority = l.priority
                        and (t.run_at_ms, t.id) >= (l.run_at_ms, l.id) and t.run_at_ms <= (select @now_ms)
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
where t.ctid = any (array(select p.place from picked p))
returning @task_columns
