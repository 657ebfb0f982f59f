-- Point business keys at tasks.
-- Params: arrays of one length :keys text[] (distinct), :task_ids text[]. Result: none. Locks: the keys' rows.
insert into cairnq_task_keys as k (key, task_id, created_at_ms, updated_at_ms)
select i.key, i.task_id, clock.now_ms, clock.now_ms
from (select @now_ms as now_ms) clock
cross join unnest(:keys::text[], :task_ids::text[]) as i (key, task_id)
on conflict (key) do update
set task_id = excluded.task_id, updated_at_ms = excluded.updated_at_ms
