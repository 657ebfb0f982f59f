-- Point business keys at tasks.
-- Params: arrays of one length :keys (distinct), :task_ids. Result: none. Locks: the file's writer.
insert into cairnq_task_keys (key, task_id, created_at_ms, updated_at_ms)
select json_extract(i.value, '$[0]'), json_extract(i.value, '$[1]'), @now_ms, @now_ms
from json_each(:(keys, task_ids)) i
where true
on conflict (key) do update
set task_id = excluded.task_id, updated_at_ms = excluded.updated_at_ms
