-- What a host has to expect of its queues. Params: :queues text[], :bound bigint. Locks: none.
-- Result: queue, is anything due but suspects, does anything run or wait as a suspect, ms until the next one is due
-- (null: none is to come), and (variant `expired`) is any lease over, of whatever queue.
-- Steps from priority to priority as a claim does. Reads at most :bound of what runs, but all of it for `expired`.
with running as materialized (
    select t.queue from cairnq_tasks t where t.status = 'running' limit :bound::bigint
)
, stale as materialized ( -- if expired
    select t.id from cairnq_tasks t -- if expired
    where t.status = 'running' and t.lease_until_ms <= (select @now_ms) limit :bound::bigint -- if expired
) -- if expired
select q.queue, o.due,
    exists (select from running r where r.queue = q.queue)
        or coalesce(
            (select true from cairnq_tasks t where t.status = 'queued' and t.queue = q.queue and @suspect limit 1), false
        ),
    o.next_at_ms - (select @now_ms)
    , exists (select from stale) -- if expired
from unnest(:queues::text[]) as q (queue)
cross join lateral (
    with recursive ladder (priority) as (
        (
            select t.priority from cairnq_tasks t
            where t.status = 'queued' and t.queue = q.queue
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
    select count(d.id) > 0 as due, min(n.run_at_ms) as next_at_ms
    from ladder l
    left join lateral (
        select t.id from cairnq_tasks t
        where t.status = 'queued' and t.queue = q.queue and t.priority = l.priority
            and (@suspect) is not true and t.run_at_ms <= (select @now_ms)
        order by t.run_at_ms, t.id
        limit 1
    ) d on true
    left join lateral (
        select t.run_at_ms from cairnq_tasks t
        where t.status = 'queued' and t.queue = q.queue and t.priority = l.priority
            and t.run_at_ms > (select @now_ms)
        order by t.run_at_ms, t.id
        limit 1
    ) n on true
) o
