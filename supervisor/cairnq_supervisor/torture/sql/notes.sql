-- What the clients did.
select deed, task_id, name from torture_notes
