-- What a worker is running, as the database knows it.
-- Params: :worker_id text. Result: id, attempt. Locks: none.
select t.id, t.attempt from cairnq_tasks t
where t.status = 'running' and t.worker_id = :worker_id::text
