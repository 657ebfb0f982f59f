-- Rows of running tasks, locked until the transaction ends: nobody can renew or settle them.
select id from cairnq_tasks where status = 'running' order by id limit 20 for update skip locked
