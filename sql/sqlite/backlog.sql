-- How much waits and runs in each queue, counted up to a bound. Params: :queues JSON array, :bound. Locks: none.
-- Result: queue, due, running, ms for which the oldest due task has waited (null: none is due), suspects.
select q.value,
    (
        select count(*)
        from (
            select t.run_at_ms from cairnq_tasks t indexed by cairnq_lean_claim_idx
            where t.status = 'queued' and t.queue = q.value
            limit :bound
        ) w
        where w.run_at_ms <= (select @now_ms)
    ),
    (
        select count(*)
        from (select t.queue from cairnq_tasks t where t.status = 'running' limit :bound) r
        where r.queue = q.value
    ),
    (
        select max((select @now_ms) - w.run_at_ms)
        from (
            select t.run_at_ms from cairnq_tasks t indexed by cairnq_lean_claim_idx
            where t.status = 'queued' and t.queue = q.value
            limit :bound
        ) w
        where w.run_at_ms <= (select @now_ms)
    ),
    (
        select count(*)
        from (
            select 1 from cairnq_tasks t indexed by cairnq_lean_suspect_idx
            where t.status = 'queued' and t.queue = q.value and @suspect
            limit :bound
        ) counted
    )
from json_each(:queues) q
