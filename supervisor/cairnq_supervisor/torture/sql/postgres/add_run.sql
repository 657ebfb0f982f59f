-- One call of a handler, from its black box.
insert into torture_runs (run_id, task_id, attempt, worker_id, pid, began, trusted, ended, raised)
values (%s, %s, %s, %s, %s, %s, %s, %s, %s)
