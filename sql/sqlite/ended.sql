-- Which of these tasks have ended, or are gone? Params: :ids JSON array. Result: id. Locks: none.
select i.value
from json_each(:ids) i
left join cairnq_tasks t on t.id = i.value
where t.id is null or t.status in ('succeeded', 'failed', 'canceled')
