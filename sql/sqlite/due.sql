-- Is anything due but suspects? A read-only look, so that who finds nothing never asks for the file's write lock.
-- Params: :queues JSON array, :names JSON array or null (any name). Result: one boolean. Locks: none.
select exists (
    with recursive
    source (queue, name) as (
        select q.value, n.value from json_each(:queues) q cross join json_each(coalesce(:names, 'null')) n
    ),
    @ladder
    select 1
    from ladder l
    cross join source s
    where case when s.name is null
        then exists (
            select 1 from cairnq_tasks t indexed by cairnq_lean_claim_idx
            where t.status = 'queued' and t.queue = s.queue and t.priority = l.priority
                and t.run_at_ms <= (select @now_ms) and @suspect = 0
        )
        else exists (
            select 1 from cairnq_tasks t indexed by cairnq_lean_claim_name_idx
            where t.status = 'queued' and t.queue = s.queue and t.name = s.name and @suspect = 0
                and t.priority = l.priority and t.run_at_ms <= (select @now_ms)
        )
    end
)
