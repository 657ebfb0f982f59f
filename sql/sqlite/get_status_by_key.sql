-- Read id and status of the task under a business key. Params: :key. Result: id, status. Locks: none.
select t.id, t.status
from cairnq_task_keys k
cross join cairnq_tasks t on t.id = k.task_id
where k.key = :key
