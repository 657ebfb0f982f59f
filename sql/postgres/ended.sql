-- Which of these tasks have ended, or are gone? Params: :ids text[]. Result: id. Locks: none.
select i.id
from unnest(:ids::text[]) as i (id)
left join cairnq_tasks t on t.id = i.id and t.id = any (:ids::text[])
where t.id is null or t.status in ('succeeded', 'failed', 'canceled')
