-- Which task each key points at.
select key, task_id from cairnq_task_keys
