-- Is a suspect of :names in :queues due? Params: :queues, :names text[]. Result: one boolean. Locks: none.
select exists (
    select
    from unnest(:queues::text[]) as q (queue)
    cross join lateral (
        select from cairnq_tasks t
        where t.status = 'queued' and t.queue = q.queue and @suspect
            and t.name = any (:names::text[]) and t.run_at_ms <= (select @now_ms)
        order by t.priority desc, t.run_at_ms, t.id
        limit 1
    ) c
)
