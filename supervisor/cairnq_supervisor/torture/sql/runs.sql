-- Every call of a handler.
select run_id, task_id, attempt, worker_id, pid, began, trusted, ended from torture_runs
