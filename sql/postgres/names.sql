-- Under which names do these tasks stand? Params: :ids text[]. Result: name, how many. Locks: none.
select t.name, count(*)
from cairnq_tasks t
where t.id = any (:ids::text[])
group by t.name
