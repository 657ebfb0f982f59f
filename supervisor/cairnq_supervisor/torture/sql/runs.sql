-- Every call of a handler.
select run_id, task_id, attempt, worker_id, pid, began, trusted, ended, raised from torture_runs
