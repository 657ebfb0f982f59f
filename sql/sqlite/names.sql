-- Under which names do these tasks stand? Params: :ids JSON array. Result: name, how many. Locks: none.
select t.name, count(*)
from json_each(:ids) i
join cairnq_tasks t on t.id = i.value
group by t.name
