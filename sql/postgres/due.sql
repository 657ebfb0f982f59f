-- Is anything due but suspects? A read-only look before a claiming transaction is opened.
-- Params: :queues text[], :names text[] (variant with it: only these names). Result: one boolean. Locks: none.
select exists (
    select
    from unnest(:queues::text[]) as q (queue)
    cross join unnest(:names::text[]) as n (name) -- if names
    cross join lateral (
        with recursive ladder (priority) as (
            (
                select t.priority from cairnq_tasks t
                where t.status = 'queued' and t.queue = q.queue
                    and t.name = n.name and @unsuspected -- if names
                order by t.priority desc limit 1
            )
            union all
            select (
                select t.priority from cairnq_tasks t
                where t.status = 'queued' and t.queue = q.queue and t.priority < l.priority
                    and t.name = n.name and @unsuspected -- if names
                order by t.priority desc limit 1
            )
            from ladder l where l.priority is not null
        )
        select
        from ladder l
        cross join lateral (
            select t.id from cairnq_tasks t
            where t.status = 'queued' and t.queue = q.queue and t.priority = l.priority
                and t.name = n.name and @unsuspected -- if names
                and (@suspect) is not true -- unless names
                and t.run_at_ms <= (select @now_ms)
            order by t.run_at_ms, t.id
            limit 1
        ) d
        limit 1
    ) c
)
