-- What a worker is running, as the database knows it. Params: :worker_id. Result: id, attempt. Locks: none.
select t.id, t.attempt from cairnq_tasks t indexed by cairnq_lean_running_idx
where t.status = 'running' and t.worker_id = :worker_id
