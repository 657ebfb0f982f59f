-- Is a suspect of :names in :queues due? Params: :queues, :names JSON arrays. Result: one boolean. Locks: none.
select exists (
    select 1
    from json_each(:queues) q
    cross join cairnq_tasks t indexed by cairnq_lean_suspect_idx
    where t.status = 'queued' and t.queue = q.value and @suspect
        and t.name in (select n.value from json_each(:names) n) and t.run_at_ms <= (select @now_ms)
)
