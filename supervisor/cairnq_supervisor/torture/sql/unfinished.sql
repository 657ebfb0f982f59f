-- How many tasks have not ended yet.
select count(*) from cairnq_tasks where status in ('queued', 'running')
