-- Is there any task? Params: none. Result: one boolean.
select exists (select 1 from cairnq_tasks)
