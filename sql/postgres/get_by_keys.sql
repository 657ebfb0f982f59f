-- Read the tasks that business keys point at. Params: :keys text[]. Result: the key, then task columns. Locks: none.
select k.key, @task_columns
from cairnq_task_keys k
join cairnq_tasks t on t.id = k.task_id
where k.key = any (:keys::text[])
