-- Insert queued tasks, one or many.
-- Params: arrays of one length :ids, :names, :queues, :payloads (JSON), :metadatas (JSON), :max_attempts, :priorities,
--   :parent_ids, :root_ids, :correlation_ids (null: none; a null root_id is the task's own id), :delays_ms.
-- Result: created_at_ms, a row for each and the same in all; each run_at_ms is that and the delay.
-- Locks: the file's writer.
insert into cairnq_tasks (
    id, name, queue, status, payload, metadata, max_attempts, priority,
    parent_id, root_id, correlation_id, run_at_ms, created_at_ms, updated_at_ms
)
select json_extract(i.value, '$[0]'), json_extract(i.value, '$[1]'), json_extract(i.value, '$[2]'), 'queued',
    json_extract(i.value, '$[3]'), json_extract(i.value, '$[4]'), json_extract(i.value, '$[5]'),
    json_extract(i.value, '$[6]'), json_extract(i.value, '$[7]'),
    coalesce(json_extract(i.value, '$[8]'), json_extract(i.value, '$[0]')), json_extract(i.value, '$[9]'),
    @now_ms + json_extract(i.value, '$[10]'), @now_ms, @now_ms
from json_each(:(
    ids, names, queues, payloads, metadatas, max_attempts, priorities, parent_ids, root_ids, correlation_ids, delays_ms
)) i
returning created_at_ms
