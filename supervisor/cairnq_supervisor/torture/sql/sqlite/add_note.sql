-- One deed of a client.
insert into torture_notes (deed, task_id, name) values (?, ?, ?)
