-- Claim one due suspect of :names from :queues, for a process that runs nothing beside it.
-- Params: :queues, :names JSON arrays, :worker_id, :lease_ms. Result: task columns. Locks: the file's writer.
with picked (id) as (
    select t.id
    from json_each(:queues) q
    cross join cairnq_tasks t indexed by cairnq_lean_suspect_idx
    where t.status = 'queued' and t.queue = q.value and @suspect
        and t.name in (select n.value from json_each(:names) n) and t.run_at_ms <= (select @now_ms)
    order by t.priority desc, t.run_at_ms, t.id
    limit 1
)
update cairnq_tasks as t
set status = 'running',
    attempt = t.attempt + 1,
    worker_id = :worker_id,
    lease_until_ms = @now_ms + :lease_ms,
    updated_at_ms = @now_ms
where t.id in (select p.id from picked p)
returning @returned_columns
