-- What was written together with a settlement.
select task_id, run_id from torture_effects
