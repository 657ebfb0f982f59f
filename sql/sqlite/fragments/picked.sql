picked (id) as (
    select d.value
    from ladder l
    cross join json_each((
        select json_group_array(m.id)
        from (
            select json_extract(c.value, '$[1]') as id
            from source s
            cross join json_each(
                case when s.name is null
                    then (
                        select json_group_array(json_array(w.run_at_ms, w.id))
                        from (
                            select t.run_at_ms, t.id from cairnq_tasks t indexed by cairnq_lean_claim_idx
                            where t.status = 'queued' and t.queue = s.queue and t.priority = l.priority
                                and t.run_at_ms <= (select @now_ms) and @suspect = 0
                            order by t.run_at_ms, t.id limit :limit
                        ) w
                    )
                    else (
                        select json_group_array(json_array(w.run_at_ms, w.id))
                        from (
                            select t.run_at_ms, t.id from cairnq_tasks t indexed by cairnq_lean_claim_name_idx
                            where t.status = 'queued' and t.queue = s.queue and t.name = s.name and @suspect = 0
                                and t.priority = l.priority and t.run_at_ms <= (select @now_ms)
                            order by t.run_at_ms, t.id limit :limit
                        ) w
                    )
                end
            ) c
            order by json_extract(c.value, '$[0]'), json_extract(c.value, '$[1]')
            limit :limit
        ) m
    )) d
    where l.priority is not null
    limit :limit
)
