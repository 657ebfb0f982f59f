-- What a host has to expect of its queues. Params: :queues JSON array, :bound. Locks: none.
-- Result: queue, is anything due but suspects, does anything run or wait as a suspect, ms until the next one is due
-- (null: none is to come), and (variant `expired`) is any lease over, of whatever queue.
with recursive
source (queue, name) as (select q.value, null from json_each(:queues) q),
@ladder
select q.value,
    exists (
        select 1 from ladder l
        where exists (
            select 1 from cairnq_tasks t indexed by cairnq_lean_claim_idx
            where t.status = 'queued' and t.queue = q.value and t.priority = l.priority
                and t.run_at_ms <= (select @now_ms) and @suspect = 0
        )
    ),
    exists (
        select 1 from (select t.queue from cairnq_tasks t where t.status = 'running' limit :bound) r
        where r.queue = q.value
    ) or exists (
        select 1 from cairnq_tasks t indexed by cairnq_lean_suspect_idx
        where t.status = 'queued' and t.queue = q.value and @suspect
    ),
    (
        select min((
            select t.run_at_ms from cairnq_tasks t indexed by cairnq_lean_claim_idx
            where t.status = 'queued' and t.queue = q.value and t.priority = l.priority
                and t.run_at_ms > (select @now_ms)
            order by t.run_at_ms limit 1
        ))
        from ladder l
    ) - (select @now_ms)
    , exists (select 1 from cairnq_tasks t where t.status = 'running' and t.lease_until_ms <= (select @now_ms)) -- if expired
from json_each(:queues) q
