ladder (priority) as (
    values (9223372036854775807)
    union all
    select (
        select max(
            case when s.name is null
                then (
                    select t.priority from cairnq_tasks t indexed by cairnq_lean_claim_idx
                    where t.status = 'queued' and t.queue = s.queue and t.priority < l.priority
                    order by t.priority desc limit 1
                )
                else (
                    select t.priority from cairnq_tasks t indexed by cairnq_lean_claim_name_idx
                    where t.status = 'queued' and t.queue = s.queue and t.name = s.name and @suspect = 0
                        and t.priority < l.priority
                    order by t.priority desc limit 1
                )
            end
        )
        from source s
    )
    from ladder l where l.priority is not null
)
