-- Read one task. Params: :id. Result: task columns. Locks: none.
select @task_columns from cairnq_tasks t where t.id = :id
