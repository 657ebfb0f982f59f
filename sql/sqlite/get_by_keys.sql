-- Read the tasks that business keys point at. Params: :keys JSON array. Result: the key, then task columns. Locks: none.
select k.key, @task_columns
from json_each(:keys) wanted
cross join cairnq_task_keys k on k.key = wanted.value
cross join cairnq_tasks t on t.id = k.task_id
