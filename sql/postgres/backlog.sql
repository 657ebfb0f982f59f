-- How much waits and runs in each queue, counted up to a bound. Params: :queues text[], :bound bigint. Locks: none.
-- Result: queue, due, running, ms for which the oldest due task has waited (null: none is due), suspects.
-- Reads at most :bound index entries for each queue, and as many of what runs; what is due behind them is not counted.
with running as materialized (
    select t.queue from cairnq_tasks t where t.status = 'running' limit :bound::bigint
)
select q.queue, d.due, (select count(*) from running r where r.queue = q.queue), d.oldest_ms,
    (
        select count(*)
        from (
            select from cairnq_tasks t where t.status = 'queued' and t.queue = q.queue and @suspect limit :bound::bigint
        ) s
    )
from unnest(:queues::text[]) as q (queue)
cross join lateral (
    select count(*) as due, max((select @now_ms) - w.run_at_ms) as oldest_ms
    from (
        select t.run_at_ms from cairnq_tasks t
        where t.status = 'queued' and t.queue = q.queue
        order by t.priority desc, t.run_at_ms, t.id
        limit :bound::bigint
    ) w
    where w.run_at_ms <= (select @now_ms)
) d
