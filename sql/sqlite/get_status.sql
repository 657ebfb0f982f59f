-- Read a task's id and status alone. Params: :id. Result: id, status. Locks: none.
select t.id, t.status from cairnq_tasks t where t.id = :id
